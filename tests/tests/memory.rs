//! What a request may take of the memory.
#![expect(
    clippy::large_stack_arrays,
    clippy::expect_used,
    reason = "a test fails by panicking, and owns its tasks"
)]

use std::convert::Infallible;

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes},
    extract::Request,
    routing::post,
};
use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
use tower::ServiceExt;

const MIB: u64 = 1024 * 1024;

#[idempotent]
async fn json(Json(_): Json<String>) {}

#[idempotent]
async fn raw(_: Request) {}

#[idempotent]
async fn unread() {}

/// 100 MiB, of which a chunk exists at a time.
fn hundred_mib() -> Body {
    let chunk = Bytes::from_static(&[b'x'; 64 * 1024]);
    let chunks = (0..1600).map(move |_| Ok::<_, Infallible>(chunk.clone()));
    Body::from_stream(futures_util::stream::iter(chunks))
}

/// The most memory that this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a peak");
    let kibibytes = line.split_whitespace().nth(1).expect("a number");
    kibibytes.parse::<u64>().expect("a number") * 1024
}

#[test]
fn a_body_of_100_mib_takes_no_more_than_its_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let app = Router::new()
        .route("/json", post(json))
        .route("/raw", post(raw))
        .route("/unread", post(unread));
    let app = app.layer(Extension(IdempotencyRuntime::embedded(Caller::shared())));
    let send = |path: &str, body: Body| {
        let request = Request::post(path)
            .header("idempotency-key", "k")
            .header("content-type", "application/json");
        let request = request.body(body).unwrap();
        runtime
            .block_on(app.clone().oneshot(request))
            .unwrap()
            .status()
            .as_u16()
    };
    for path in ["/json", "/raw", "/unread"] {
        send(path, Body::from("\"warm up\""));
    }
    // The extractor's own limit of 2 MiB, kept besides; then ours of 16 MiB. In this order, because a
    // peak stays.
    for (path, most) in [
        ("/json", 2 * 2 * MIB),
        ("/raw", 16 * MIB),
        ("/unread", 16 * MIB),
    ] {
        let before = peak();
        assert_eq!(send(path, hundred_mib()), 413, "{path}");
        let taken = peak() - before;
        assert!(taken <= most + MIB, "{path}: {taken} bytes");
    }
    assert!(peak() > 16 * MIB, "the peak tells of large bodies");
}
