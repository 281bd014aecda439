//! Handlers, bare and with the attribute, and the requests they get.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{Path, Request, State},
    http::{StatusCode, header},
    response::Response,
    routing::post,
};
use bytes::Bytes;
use idempotent_runtime::{Caller, IdempotencyRuntime, RedisStore, idempotent};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;

/// What handlers leave behind.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) runs: AtomicU64,
    /// How many slow ones have begun.
    pub(crate) begun: AtomicU64,
    /// When the last slow one was over.
    pub(crate) ended: Mutex<Option<Instant>>,
}

type Shared = Arc<Seen>;

#[derive(Deserialize)]
struct CreateOrder {
    customer: String,
    sku: String,
    quantity: u32,
}

#[derive(Serialize)]
struct Order {
    id: u64,
    customer: String,
    sku: String,
    quantity: u32,
    state: &'static str,
    note: &'static str,
}

/// Answers about 200 bytes.
async fn bare(
    State(seen): State<Shared>,
    Json(order): Json<CreateOrder>,
) -> (StatusCode, Json<Order>) {
    let order = Order {
        id: seen.runs.fetch_add(1, Ordering::Relaxed),
        customer: order.customer,
        sku: order.sku,
        quantity: order.quantity,
        state: "accepted",
        note: "the parcel leaves tomorrow morning; the invoice follows by mail, with the delivery date",
    };
    (StatusCode::CREATED, Json(order))
}

#[idempotent]
async fn order(seen: State<Shared>, order: Json<CreateOrder>) -> (StatusCode, Json<Order>) {
    bare(seen, order).await
}

/// The largest response.
const LARGEST: usize = 256 * 1024;
static EXPORT: [u8; LARGEST] = [b'x'; LARGEST];

/// Answers this many bytes, without spending time on them.
#[idempotent]
async fn export(Path(bytes): Path<usize>, _: Json<CreateOrder>) -> (StatusCode, Bytes) {
    (StatusCode::CREATED, Bytes::from_static(&EXPORT[..bytes]))
}

/// Takes this many milliseconds.
#[idempotent]
async fn slow(
    State(seen): State<Shared>,
    Path(millis): Path<u64>,
    _: Json<CreateOrder>,
) -> StatusCode {
    seen.begun.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(millis)).await;
    seen.runs.fetch_add(1, Ordering::Relaxed);
    *seen.ended.lock() = Some(Instant::now());
    StatusCode::CREATED
}

/// One replica: a router and its runtime.
#[derive(Clone)]
pub(crate) struct Replica {
    pub(crate) app: Router,
    pub(crate) runtime: IdempotencyRuntime,
    pub(crate) seen: Shared,
}

impl Replica {
    /// A replica over this server, with default settings.
    pub(crate) async fn start(redis: &str) -> Self {
        let store = RedisStore::connect(redis, "bench")
            .await
            .expect("the server can be used");
        let runtime = IdempotencyRuntime::builder()
            .caller(Caller::authorization())
            .store(store)
            .build()
            .expect("the settings are valid");
        let seen = Shared::default();
        let app = Router::new()
            .route("/bare", post(bare))
            .route("/orders", post(order))
            .route("/exports/{bytes}", post(export))
            .route("/slow/{millis}", post(slow))
            .layer(Extension(runtime.clone()))
            .with_state(Arc::clone(&seen));
        Self { app, runtime, seen }
    }

    /// Sends a request, which must succeed; its response.
    pub(crate) async fn send(&self, request: Request) -> Response {
        let response = self.app.clone().oneshot(request).await;
        let response = response.expect("a router is infallible");
        assert_eq!(response.status(), StatusCode::CREATED);
        response
    }

    pub(crate) fn runs(&self) -> u64 {
        self.seen.runs.load(Ordering::Relaxed)
    }
}

pub(crate) fn is_replay(response: &Response) -> bool {
    response.headers().contains_key("x-idempotent-replay")
}

/// A key that was never sent before.
pub(crate) fn fresh_key() -> u64 {
    static SENT: AtomicU64 = AtomicU64::new(0);
    SENT.fetch_add(1, Ordering::Relaxed)
}

const BODY: &str = r#"{"customer":"c-102938","sku":"SKU-0000","quantity":3}"#;

pub(crate) fn request(path: &str, key: u64) -> Request {
    Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(
            header::AUTHORIZATION,
            "Bearer 0123456789abcdef0123456789abcdef0123456789abcdef",
        )
        .header(header::CONTENT_LENGTH, BODY.len())
        .header(header::USER_AGENT, "bench/1.0")
        .header(header::HOST, "localhost")
        .header(header::ACCEPT, "*/*")
        .header(
            "idempotency-key",
            format!("\"0f8fad5b-d9cb-469f-a165-{key:012x}\""),
        )
        .body(Body::from(BODY))
        .expect("a valid request")
}
