//! One handler, and the requests it gets.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
};
use serde::{Deserialize, Serialize};

/// How often the handler has run.
pub(crate) type Runs = Arc<AtomicU64>;

#[derive(Deserialize)]
pub(crate) struct CreateOrder {
    customer: String,
    sku: String,
    quantity: u32,
}

#[derive(Serialize)]
pub(crate) struct Order {
    id: u64,
    customer: String,
    sku: String,
    quantity: u32,
    state: &'static str,
    note: &'static str,
}

/// Answers about 190 bytes.
pub(crate) async fn create_order(
    State(runs): State<Runs>,
    Json(order): Json<CreateOrder>,
) -> (StatusCode, Json<Order>) {
    let order = Order {
        id: runs.fetch_add(1, Ordering::Relaxed),
        customer: order.customer,
        sku: order.sku,
        quantity: order.quantity,
        state: "accepted",
        note: "the parcel leaves tomorrow morning; the invoice follows by mail, with the delivery date",
    };
    (StatusCode::CREATED, Json(order))
}

/// Keys of one session of the peer that has them, like those of a client that sends a few orders.
const KEYS_OF_A_SESSION: u64 = 64;

const BODY: &str = r#"{"customer":"c-102938","sku":"SKU-0000","quantity":3}"#;

/// A request, with a key or without one, and with a session where the peer needs it.
pub(crate) fn request(key: Option<u64>, session: bool) -> Request {
    let mut request = Request::post("/orders")
        .header(header::HOST, "localhost")
        .header(header::USER_AGENT, "bench/1.0")
        .header(header::ACCEPT, "*/*")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, BODY.len())
        .header(
            header::AUTHORIZATION,
            "Bearer 0123456789abcdef0123456789abcdef0123456789abcdef",
        );
    if let Some(key) = key {
        request = request.header(
            "idempotency-key",
            format!("0f8fad5b-d9cb-469f-a165-{key:012x}"),
        );
    }
    if session {
        // A session's id is 16 bytes in base64; digits are, and an A leaves no bits over.
        let id = key.unwrap_or_default() / KEYS_OF_A_SESSION;
        request = request.header(header::COOKIE, format!("session={id:021}A"));
    }
    request.body(Body::from(BODY)).expect("a valid request")
}
