//! B113, B123, B124, B125: silent in a crate that forbids what a macro is tempted to allow (E0453).
#![forbid(
    dead_code,
    deprecated,
    missing_docs,
    non_snake_case,
    unreachable_code,
    unreachable_pub,
    unsafe_code,
    unused_imports,
    unused_lifetimes,
    unused_must_use,
    unused_mut,
    unused_parens,
    unused_qualifications,
    unused_variables
)]
#![deny(warnings, rust_2018_idioms, unused, single_use_lifetimes, trivial_casts, unused_results)]

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use idempotent_runtime::{idempotent, non_idempotent};

/// The database.
pub type Db = Arc<str>;

/// Reads `mut` arguments.
#[idempotent]
pub async fn b113_mut(mut headers: HeaderMap, Json(mut body): Json<Vec<u8>>) -> Json<Vec<u8>> {
    headers.clear();
    body.push(1);
    Json(body)
}

/// Uses `mut` in a closure only.
#[idempotent]
pub async fn b124_closure(mut body: String) -> String {
    let mut push = || body.push('!');
    push();
    body
}

/// Names its caller by an argument that the body has no use of.
#[idempotent(subject = format!("{tenant}:{}", order.0))]
pub async fn subject_only(
    State(db): State<Db>,
    Path((tenant, _)): Path<(u32, u32)>,
    order: axum::Extension<u8>,
    Json(mut body): Json<Vec<u8>>,
) -> impl IntoResponse {
    body.extend(db.bytes());
    Json(body)
}

/// Gives up.
///
/// # Errors
/// Always.
#[idempotent(required)]
pub async fn fails<T: Send + 'static>(Json(_): Json<T>) -> Result<(), StatusCode> {
    Err(StatusCode::CONFLICT)
}

/// Never comes back.
#[idempotent]
pub async fn panics() -> impl IntoResponse {
    if true {
        return StatusCode::OK;
    }
    panic!("never")
}

/// Loops.
#[idempotent]
pub async fn loops() -> StatusCode {
    loop {
        std::future::pending::<()>().await;
    }
}

/// Only reads.
#[non_idempotent("it only reads")]
pub async fn reads() -> StatusCode {
    StatusCode::OK
}

/// Starts here.
fn main() {
    let router = axum::Router::<Db>::new()
        .route("/a", axum::routing::post(b113_mut).put(b124_closure))
        .route("/b", axum::routing::post(subject_only).put(fails::<u8>))
        .route("/c", axum::routing::post(panics).put(loops).patch(reads));
    drop(router);
}
