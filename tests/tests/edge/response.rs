//! What is kept of a response.

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{Response, StatusCode, response::Parts},
    routing::post,
};
use futures_util::FutureExt;
use idempotent_runtime::{Caller, IdempotencyRuntime, Verdict, idempotent};
use idempotent_tests::http::{Embedded, Runs, keyed, send};

#[idempotent]
async fn hop(State(runs): State<Runs>) -> Response<Body> {
    Response::builder()
        .header("connection", "keep-alive")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .header("x-kept", "1")
        .body(Body::from(runs.add().to_string()))
        .unwrap()
}

/// Every line of `Connection` names headers of this connection only.
#[tokio::test]
async fn a_header_named_in_a_second_connection_line_is_not_replayed() {
    let app = Embedded::shared().on(Router::new()
        .route("/", post(hop))
        .with_state(Runs::default()));
    drop(send(&app, keyed("/", "k", "")).await);
    let again = send(&app, keyed("/", "k", "")).await;
    assert!(again.is_replay() && again.headers.contains_key("x-kept"));
    assert!(!again.headers.contains_key("x-hop"), "{:?}", again.headers);
}

#[idempotent]
async fn created(State(runs): State<Runs>) -> StatusCode {
    let _ = runs.add();
    StatusCode::CREATED
}

fn panics(_: &Parts) -> Verdict {
    panic!("as the test asks")
}

/// The handler has answered 201, so it has taken effect; that the verdict panics changes nothing
/// about that.
#[tokio::test]
async fn a_verdict_that_panics_over_a_success_does_not_run_it_again() {
    let runs = Runs::default();
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .verdict(panics)
        .build()
        .unwrap();
    let app = Router::new()
        .route("/", post(created))
        .with_state(runs.clone())
        .layer(Extension(runtime));
    for _ in 0..2 {
        let reply = send(&app, keyed("/", "k", ""));
        drop(std::panic::AssertUnwindSafe(reply).catch_unwind().await);
    }
    assert_eq!(runs.count(), 1);
}

#[idempotent]
async fn gateway(State(runs): State<Runs>) -> Response<Body> {
    let _ = runs.add();
    // the headers of a service behind it, which has replayed
    Response::builder()
        .header("x-idempotent-replay", "true")
        .body(Body::empty())
        .unwrap()
}

/// A run is never marked as a replay, also where the handler passes the mark of another service on.
#[tokio::test]
async fn a_run_is_not_marked_as_a_replay() {
    let app = Embedded::shared().on(Router::new()
        .route("/", post(gateway))
        .with_state(Runs::default()));
    let first = send(&app, keyed("/", "k", "")).await;
    assert_eq!(first.outcome(), (200, false));
}
