//! Orders: what must never be written twice.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use idempotent_runtime::{IdempotencyContext, idempotent};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{app::Shop, bounded::Bounded, caller::CallerName, table::Row};

/// The body of `POST /orders`.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOrder {
    item: String,
    quantity: Bounded<1, 1000>,
    /// How long the handler works before it answers: time for duplicates to arrive.
    #[serde(default)]
    delay_ms: Bounded<0, 60_000>,
    /// How many runs for this body fail before one succeeds.
    #[serde(default)]
    fail_times: u32,
}

/// A row of the order book.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    item: String,
    quantity: Bounded<1, 1000>,
    caller: String,
    /// The request's idempotency key.
    key: Option<String>,
    /// Whether the store has guarded the run that wrote this row.
    guarded: bool,
    /// Which copy of the program that was, by its address.
    copy: SocketAddr,
    /// Milliseconds since 1970.
    created_ms: u128,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cancelled: bool,
}

/// The answer to `POST /orders`.
#[derive(Serialize)]
pub(crate) struct Created {
    id: usize,
    item: String,
    quantity: Bounded<1, 1000>,
}

/// The one line above the handler is all that makes it safe to retry.
#[idempotent]
pub(crate) async fn create(
    State(shop): State<Shop>,
    Extension(caller): Extension<CallerName>,
    context: IdempotencyContext,
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Created>), Failure> {
    tokio::time::sleep(Duration::from_millis(new.delay_ms.get())).await;
    if shop.failures.is_due(&new) {
        return Err(Failure::Asked);
    }
    let order = shop.orders.insert(Order {
        item: new.item.clone(),
        quantity: new.quantity,
        caller: caller.0,
        key: context.key().map(|key| key.as_str().to_owned()),
        guarded: context.guarded(),
        copy: shop.copy,
        created_ms: now_ms(),
        cancelled: false,
    })?;
    let created = Created {
        id: order.id,
        item: new.item,
        quantity: new.quantity,
    };
    let location = format!("/orders/{}", order.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(created),
    ))
}

/// Works with a path alone, and answers without a body.
#[idempotent]
pub(crate) async fn cancel(
    State(shop): State<Shop>,
    Path(id): Path<usize>,
) -> Result<StatusCode, Failure> {
    if shop.orders.cancel(id)? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failure::Unknown)
    }
}

/// What was really created: one row for each run that succeeded.
pub(crate) async fn list(State(shop): State<Shop>) -> Result<Json<Vec<Row<Order>>>, Failure> {
    Ok(Json(shop.orders.all()?))
}

pub(crate) async fn read(
    State(shop): State<Shop>,
    Path(id): Path<usize>,
) -> Result<Json<Row<Order>>, Failure> {
    shop.orders.find(id)?.map(Json).ok_or(Failure::Unknown)
}

/// Why there is no order to answer with.
pub(crate) enum Failure {
    Asked,
    Unknown,
    Book(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Book(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Asked => (
                StatusCode::SERVICE_UNAVAILABLE,
                "failed as asked by `fail_times`; nothing was created",
            )
                .into_response(),
            Self::Unknown => StatusCode::NOT_FOUND.into_response(),
            Self::Book(error) => {
                tracing::error!(%error, "the order book cannot be read or written");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a row tells the time of day")]
fn now_ms() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis()
}

/// How many runs have failed, by body.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<NewOrder, u32>>);

impl Failures {
    /// Whether this run is one of the first `fail_times`.
    fn is_due(&self, new: &NewOrder) -> bool {
        if new.fail_times == 0 {
            return false;
        }
        let mut by_body = self.0.lock();
        let failed = by_body.entry(new.clone()).or_default();
        let due = *failed < new.fail_times;
        *failed += u32::from(due);
        due
    }
}
