//! One handler for several resources: the attribute stands on it once, and holds for all.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use idempotent_runtime::idempotent;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    app::Shop,
    bounded::Bounded,
    table::{Row, Table},
};

/// What can be created by posting its fields.
pub(crate) trait Resource:
    Clone + DeserializeOwned + Serialize + Send + Sync + 'static
{
    const PATH: &'static str;

    fn table(shop: &Shop) -> &Table<Self>;
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refund {
    order_id: u64,
    /// In cents.
    amount: Bounded<1, 100_000_000>,
}

impl Resource for Refund {
    const PATH: &'static str = "/refunds";

    fn table(shop: &Shop) -> &Table<Self> {
        &shop.refunds
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Customer {
    name: String,
}

impl Resource for Customer {
    const PATH: &'static str = "/customers";

    fn table(shop: &Shop) -> &Table<Self> {
        &shop.customers
    }
}

#[idempotent]
pub(crate) async fn create<R: Resource>(
    State(shop): State<Shop>,
    Json(fields): Json<R>,
) -> (StatusCode, [(HeaderName, String); 1], Json<Row<R>>) {
    let row = R::table(&shop).insert(fields);
    let location = format!("{}/{}", R::PATH, row.id);
    (
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(row),
    )
}

pub(crate) async fn list<R: Resource>(State(shop): State<Shop>) -> Json<Vec<Row<R>>> {
    Json(R::table(&shop).all())
}
