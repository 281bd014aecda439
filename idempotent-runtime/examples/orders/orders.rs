//! Orders: what must never be written twice.

use std::{collections::HashMap, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderName, StatusCode, header},
};
use idempotent_runtime::idempotent;
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

/// A row of the table.
#[derive(Clone, Serialize)]
pub(crate) struct Order {
    item: String,
    quantity: Bounded<1, 1000>,
    caller: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
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
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Created>), (StatusCode, &'static str)> {
    tokio::time::sleep(Duration::from_millis(new.delay_ms.get())).await;
    if shop.failures.is_due(&new) {
        return Err((
            StatusCode::SERVICE_UNAVAILABLE,
            "failed as asked by `fail_times`; nothing was created",
        ));
    }
    let order = shop.orders.insert(Order {
        item: new.item.clone(),
        quantity: new.quantity,
        caller: caller.0,
        cancelled: false,
    });
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
pub(crate) async fn cancel(State(shop): State<Shop>, Path(id): Path<usize>) -> StatusCode {
    if shop.orders.update(id, |order| order.cancelled = true) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

/// What was really created: one row for each run that succeeded.
pub(crate) async fn list(State(shop): State<Shop>) -> Json<Vec<Row<Order>>> {
    Json(shop.orders.all())
}

pub(crate) async fn read(
    State(shop): State<Shop>,
    Path(id): Path<usize>,
) -> Result<Json<Row<Order>>, StatusCode> {
    shop.orders.find(id).map(Json).ok_or(StatusCode::NOT_FOUND)
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
