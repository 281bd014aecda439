//! One handler, bare and with the attribute, and the requests it gets.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    routing::post,
};
use idempotent_runtime::idempotent;
use serde::{Deserialize, Serialize};

type Counter = Arc<AtomicU64>;

#[derive(Deserialize)]
struct CreateOrder {
    customer: String,
    sku: String,
    quantity: u32,
    note: String,
    address: String,
}

#[derive(Serialize)]
struct Order {
    id: u64,
    customer: String,
    sku: String,
    quantity: u32,
    note: String,
    address: String,
    state: &'static str,
}

async fn bare(
    State(orders): State<Counter>,
    Json(order): Json<CreateOrder>,
) -> (StatusCode, Json<Order>) {
    let CreateOrder {
        customer,
        sku,
        quantity,
        note,
        address,
    } = order;
    let id = orders.fetch_add(1, Ordering::Relaxed);
    (
        StatusCode::CREATED,
        Json(Order {
            id,
            customer,
            sku,
            quantity,
            note,
            address,
            state: "new",
        }),
    )
}

#[idempotent]
async fn guarded(orders: State<Counter>, order: Json<CreateOrder>) -> (StatusCode, Json<Order>) {
    bare(orders, order).await
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/bare", post(bare))
        .route("/orders", post(guarded))
        .with_state(Counter::default())
}

/// Which key a request carries.
#[derive(Clone, Copy)]
pub(crate) enum Key {
    Absent,
    /// One that was never sent before.
    Fresh,
    /// One of 64 that were.
    Known,
}

/// About 200 bytes.
const BODY: &str = r#"{"customer":"c-1029384756","sku":"SKU-0000-1111-2222","quantity":3,"note":"please leave the parcel with the neighbour","address":"221B Baker Street, London NW1 6XE, United Kingdom, Earth 01"}"#;

pub(crate) fn request(path: &str, key: Key) -> Request {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let sent = SENT.fetch_add(1, Ordering::Relaxed);
    let key = match key {
        Key::Absent => None,
        Key::Fresh => Some(sent),
        Key::Known => Some((1 << 40) + sent % 64),
    };
    let mut request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(
            header::AUTHORIZATION,
            "Bearer 0123456789abcdef0123456789abcdef0123456789abcdef",
        )
        .header(header::CONTENT_LENGTH, BODY.len())
        .header(header::USER_AGENT, "bench/1.0")
        .header(header::HOST, "localhost")
        .header(header::ACCEPT, "*/*");
    if let Some(key) = key {
        request = request.header(
            "idempotency-key",
            format!("\"0f8fad5b-d9cb-469f-a165-{key:012x}\""),
        );
    }
    request.body(Body::from(BODY)).expect("a valid request")
}
