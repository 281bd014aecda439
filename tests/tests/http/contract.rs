//! The first request, its retry, and the ways to be refused.

use std::time::Duration;

use axum::{Json, Router, body::Body, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{Caller, IdempotencyContext, Settings, idempotent};
use idempotent_tests::http::{Embedded, Runs, keyed, post as post_to, send, until};
use serde_json::{Value, json};

#[idempotent]
async fn create(State(runs): State<Runs>, Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    let order = runs.add();
    (
        StatusCode::CREATED,
        Json(json!({ "order": order, "echo": body })),
    )
}

#[idempotent(required)]
async fn strict(State(runs): State<Runs>) -> StatusCode {
    let _ = runs.add();
    StatusCode::NO_CONTENT
}

fn app(embedded: &Embedded) -> (Router, Runs) {
    let runs = Runs::default();
    let router = Router::new()
        .route("/orders", post(create).get(create))
        .route("/strict", post(strict).get(strict))
        .with_state(runs.clone());
    (embedded.on(router), runs)
}

#[tokio::test]
async fn a_retry_gets_the_first_response_byte_for_byte() {
    let (app, runs) = app(&Embedded::shared());
    let first = send(&app, keyed("/orders", "k", r#"{"a":1}"#)).await;
    assert_eq!(first.outcome(), (201, false));
    for _ in 0..3 {
        let retry = send(&app, keyed("/orders", "k", r#"{"a":1}"#)).await;
        assert_eq!(retry.outcome(), (201, true));
        assert_eq!(retry.body, first.body);
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn without_a_key_every_request_runs_and_nothing_is_stored() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    for _ in 0..3 {
        let request = post_to("/orders")
            .header("content-type", "application/json")
            .body(Body::from("{}"))
            .unwrap();
        assert_eq!(send(&app, request).await.outcome(), (201, false));
    }
    assert_eq!((runs.count(), embedded.store.len()), (3, 0));
}

#[tokio::test]
async fn safe_methods_ignore_the_key() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    for path in ["/orders", "/strict"] {
        for _ in 0..2 {
            let request = axum::extract::Request::get(path)
                .header("idempotency-key", "k")
                .header("content-type", "application/json")
                .body(Body::from("{}"))
                .unwrap();
            assert!(!send(&app, request).await.is_replay());
        }
    }
    assert_eq!((runs.count(), embedded.store.len()), (4, 0));
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let (app, runs) = app(&Embedded::shared());
    assert_eq!(
        send(&app, keyed("/orders", "k", r#"{"a":1}"#))
            .await
            .outcome(),
        (201, false)
    );
    let other = send(&app, keyed("/orders", "k", r#"{"a":2}"#)).await;
    assert_eq!(other.outcome(), (422, false));
    assert_eq!(other.problem(), "urn:idempotency:key-reused");
    assert_eq!(other.headers["content-type"], "application/problem+json");
    assert!(!other.headers.contains_key("retry-after"));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_required_key_that_is_missing_is_a_400() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    let reply = send(&app, post_to("/strict").body(Body::empty()).unwrap()).await;
    assert_eq!(
        (reply.status.as_u16(), reply.problem().as_str()),
        (400, "urn:idempotency:key-missing")
    );
    assert!(
        reply.text().contains("idempotency-key"),
        "names the header: {}",
        reply.text()
    );
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
}

#[tokio::test]
async fn names_of_headers_and_problems_can_be_chosen() {
    let settings = Settings::default()
        .header("x-request-key".parse().unwrap())
        .replay_header("x-replayed".parse().unwrap());
    let runtime = idempotent_runtime::IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(settings)
        .problem_base("https://example.com/problems/")
        .build()
        .unwrap();
    let runs = Runs::default();
    let app = Router::new()
        .route("/orders", post(create))
        .route("/strict", post(strict))
        .with_state(runs.clone())
        .layer(axum::Extension(runtime));
    let request = || {
        post_to("/orders")
            .header("x-request-key", "k")
            .header("content-type", "application/json")
            .body(Body::from("{}"))
            .unwrap()
    };
    send(&app, request()).await;
    assert_eq!(send(&app, request()).await.headers["x-replayed"], "true");
    assert_eq!(runs.count(), 1);
    let missing = send(&app, keyed("/strict", "k", "")).await;
    assert_eq!(
        missing.problem(),
        "https://example.com/problems/key-missing"
    );
    assert!(missing.text().contains("x-request-key"));
}

#[tokio::test]
async fn a_request_with_a_key_needs_a_runtime() {
    let runs = Runs::default();
    let app = Router::new()
        .route("/orders", post(create))
        .with_state(runs.clone());
    let reply = send(&app, keyed("/orders", "k", "{}")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.problem().as_str()),
        (500, "urn:idempotency:runtime-missing")
    );
    assert_eq!(runs.count(), 0);
    let request = post_to("/orders")
        .header("content-type", "application/json")
        .body(Body::from("{}"))
        .unwrap();
    assert_eq!(send(&app, request).await.outcome(), (201, false));
}

#[idempotent(retention = "1h")]
async fn brief(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[tokio::test(start_paused = true)]
async fn b077_what_is_expired_is_absent() {
    let embedded = Embedded::shared();
    let runs = Runs::default();
    let app = embedded.on(Router::new()
        .route("/", post(brief))
        .with_state(runs.clone()));
    send(&app, keyed("/", "k", "a")).await;
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert!(send(&app, keyed("/", "k", "a")).await.is_replay());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(
        send(&app, keyed("/", "k", "another body")).await.outcome(),
        (200, false)
    );
    assert_eq!(runs.count(), 2);
}

#[idempotent]
async fn contextual(context: IdempotencyContext, body: String) -> Json<Value> {
    Json(json!({
        "key": context.key().map(|key| key.as_str()),
        "child": context.child_key("psp"),
        "other": context.child_key("mail"),
        "guarded": context.guarded(),
        "body": body,
    }))
}

#[idempotent]
async fn contextual_last(context: IdempotencyContext) -> Json<Value> {
    Json(json!({ "key": context.key().map(|key| key.as_str()), "child": context.child_key("psp") }))
}

#[tokio::test]
async fn the_context_is_filled_once_the_claim_exists() {
    let embedded = Embedded::shared();
    let app = embedded.on(Router::new()
        .route("/a", post(contextual))
        .route("/b", post(contextual_last)));
    let first = send(&app, keyed("/a", "\"k\"", "x")).await;
    let json: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(
        (&json["key"], &json["guarded"], &json["body"]),
        (&json!("k"), &json!(true), &json!("x"))
    );
    let child = json["child"].as_str().unwrap();
    assert!(
        child.len() == 36 && child.as_bytes()[14] == b'8',
        "a UUID of version 8: {child}"
    );
    assert_ne!(json["child"], json["other"]);
    let last: Value = serde_json::from_slice(&send(&app, keyed("/b", "k", "")).await.body).unwrap();
    assert_eq!(last["key"], "k");
    assert_ne!(
        last["child"], json["child"],
        "another route is another request"
    );
    let plain: Value = serde_json::from_slice(
        &send(&app, post_to("/a").body(Body::empty()).unwrap())
            .await
            .body,
    )
    .unwrap();
    assert_eq!(
        (&plain["key"], &plain["child"], &plain["guarded"]),
        (&Value::Null, &Value::Null, &json!(false))
    );
}

#[idempotent]
async fn slow(State(runs): State<Runs>) -> String {
    tokio::time::sleep(Duration::from_secs(2)).await;
    runs.add().to_string()
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_attached_and_detached_runs() {
    let embedded = Embedded::shared();
    let runs = Runs::default();
    let app = embedded.on(Router::new()
        .route("/", post(slow))
        .with_state(runs.clone()));
    let attached = tokio::spawn({
        let app = app.clone();
        async move { send(&app, keyed("/", "attached", "")).await }
    });
    idempotent_tests::http::hang_up(&app, keyed("/", "detached", ""), Duration::from_millis(100))
        .await;
    until(|| embedded.runtime.in_flight() == 2).await;
    let early = embedded
        .runtime
        .drain(Duration::from_millis(500))
        .await
        .unwrap_err();
    assert_eq!(early.kind(), idempotent_runtime::ErrorKind::StillRunning);
    assert!(early.to_string().contains('2'), "{early}");
    embedded
        .runtime
        .drain(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(
        (
            runs.count(),
            embedded.runtime.in_flight(),
            embedded.store.in_progress()
        ),
        (2, 0, 0)
    );
    assert_eq!(attached.await.unwrap().status, 200);
}
