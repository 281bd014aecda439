//! Without a key the attribute allocates nothing.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, and owns its tasks"
)]

use std::cell::Cell;

use axum::{
    Extension, Json, Router, body::Body, extract::Request, http::StatusCode, routing::post,
};
use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
use serde_json::{Value, json};
use tower::ServiceExt;

async fn bare(Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "echo": body })))
}

#[idempotent]
async fn guarded(Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "echo": body })))
}

/// Allocations of one request, of which the first few warm up.
fn allocations(runtime: &tokio::runtime::Runtime, app: &Router, path: &str) -> u64 {
    let counted = Cell::new(0);
    for _ in 0..8 {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(r#"{"a":1}"#))
            .unwrap();
        let app = app.clone();
        let info = allocation_counter::measure(|| {
            let response = runtime.block_on(app.oneshot(request)).unwrap();
            assert_eq!(response.status(), 201);
        });
        counted.set(info.count_total);
    }
    counted.get()
}

#[test]
fn no_key_no_allocation() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let router = Router::new()
        .route("/bare", post(bare))
        .route("/guarded", post(guarded));
    let on_router = router
        .clone()
        .layer(Extension(IdempotencyRuntime::embedded(Caller::shared())));
    let base = allocations(&runtime, &router, "/bare");
    assert!(base > 5, "the counter counts");
    assert_eq!(allocations(&runtime, &router, "/guarded"), base);
    assert_eq!(
        allocations(&runtime, &on_router, "/guarded"),
        allocations(&runtime, &on_router, "/bare")
    );
    IdempotencyRuntime::embedded(Caller::shared())
        .install()
        .unwrap();
    assert_eq!(allocations(&runtime, &router, "/guarded"), base);
}
