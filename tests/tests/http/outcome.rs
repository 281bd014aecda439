//! A first run that ends without a stored response: the key is as if it had never been used.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, response::Parts},
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::{Caller, IdempotencyRuntime, Verdict, idempotent};
use idempotent_tests::http::{Embedded, Runs, keyed, send};
use serde::Deserialize;
use tower_http::catch_panic::CatchPanicLayer;

#[idempotent]
async fn second_time_lucky(State(runs): State<Runs>) -> StatusCode {
    if runs.add() == 1 {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::CREATED
    }
}

#[tokio::test]
async fn b015_a_failure_frees_the_key_at_once() {
    let embedded = Embedded::shared();
    let runs = Runs::default();
    let app = embedded.on(Router::new()
        .route("/", post(second_time_lucky))
        .with_state(runs.clone()));
    assert_eq!(
        send(&app, keyed("/", "k", "")).await.outcome(),
        (500, false)
    );
    assert_eq!(embedded.store.len(), 0);
    assert_eq!(
        send(&app, keyed("/", "k", "")).await.outcome(),
        (201, false)
    );
    assert_eq!(send(&app, keyed("/", "k", "")).await.outcome(), (201, true));
    assert_eq!(runs.count(), 2);
}

#[idempotent]
async fn panicky(State(runs): State<Runs>, body: String) -> StatusCode {
    if body == "late" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(runs.add() != 1, "boom");
    StatusCode::CREATED
}

#[tokio::test(start_paused = true)]
async fn b016_a_panic_frees_the_key_and_reaches_the_layers() {
    for body in ["early", "late"] {
        let embedded = Embedded::shared();
        let runs = Runs::default();
        let bare = embedded.on(Router::new()
            .route("/", post(panicky))
            .with_state(runs.clone()));
        let app = bare.clone().layer(CatchPanicLayer::new());
        assert_eq!(send(&app, keyed("/", "k", body)).await.status, 500);
        assert_eq!((embedded.store.len(), embedded.runtime.in_flight()), (0, 0));
        assert_eq!(
            send(&app, keyed("/", "k", body)).await.outcome(),
            (201, false)
        );
        // without the layer the panic goes through to the connection's task
        let runs = Runs::default();
        let bare = embedded.on(Router::new()
            .route("/", post(panicky))
            .with_state(runs.clone()));
        let task = tokio::spawn({
            let bare = bare.clone();
            async move { send(&bare, keyed("/", "other", body)).await }
        });
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!(
            send(&bare, keyed("/", "other", body)).await.outcome(),
            (201, false)
        );
        assert_eq!(runs.count(), 2);
    }
}

#[idempotent]
async fn flaky(State(runs): State<Runs>) -> StatusCode {
    if runs.add() <= 5 {
        StatusCode::BAD_GATEWAY
    } else {
        StatusCode::CREATED
    }
}

#[tokio::test(start_paused = true)]
async fn b019_no_retry_waits_for_its_own_failure() {
    let runs = Runs::default();
    let app = Embedded::shared().on(Router::new()
        .route("/", post(flaky))
        .with_state(runs.clone()));
    let began = tokio::time::Instant::now();
    for _ in 0..5 {
        assert_eq!(
            send(&app, keyed("/", "k", "")).await.outcome(),
            (502, false)
        );
    }
    assert_eq!(
        send(&app, keyed("/", "k", "")).await.outcome(),
        (201, false)
    );
    assert_eq!((runs.count(), began.elapsed()), (6, Duration::ZERO));
}

#[derive(Deserialize)]
struct Otp {
    otp: String,
}

#[idempotent]
async fn confirm(State(runs): State<Runs>, Json(body): Json<Otp>) -> Result<String, StatusCode> {
    let run = runs.add();
    if body.otp == "1111" {
        Err(StatusCode::BAD_REQUEST)
    } else {
        Ok(run.to_string())
    }
}

#[tokio::test]
async fn b052_a_refusal_is_not_kept_and_leaves_no_fingerprint() {
    let runs = Runs::default();
    let app = Embedded::shared().on(Router::new()
        .route("/", post(confirm))
        .with_state(runs.clone()));
    assert_eq!(
        send(&app, keyed("/", "k", r#"{"otp":"1111"}"#))
            .await
            .outcome(),
        (400, false)
    );
    assert_eq!(
        send(&app, keyed("/", "k", r#"{"otp":"2222"}"#))
            .await
            .outcome(),
        (200, false)
    );
    assert_eq!(
        send(&app, keyed("/", "k", r#"{"otp":"2222"}"#))
            .await
            .outcome(),
        (200, true)
    );
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn an_extractor_that_rejects_claims_nothing() {
    let embedded = Embedded::shared();
    let runs = Runs::default();
    let app = embedded.on(Router::new()
        .route("/", post(confirm))
        .with_state(runs.clone()));
    for (body, status) in [("{", 400), (r#"{"other":1}"#, 422)] {
        let reply = send(&app, keyed("/", "k", body)).await;
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (status, ""),
            "the extractor's own answer"
        );
    }
    let mut untyped = keyed("/", "k", r#"{"otp":"2222"}"#);
    untyped.headers_mut().remove("content-type");
    assert_eq!(send(&app, untyped).await.status, 415);
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
    assert_eq!(
        send(&app, keyed("/", "k", r#"{"otp":"2222"}"#))
            .await
            .outcome(),
        (200, false)
    );
}

#[idempotent]
async fn decided(State(runs): State<Runs>, status: String) -> Response {
    let _ = runs.add();
    (
        StatusCode::from_bytes(status.as_bytes()).unwrap(),
        [("x-declined", "no")],
    )
        .into_response()
}

fn declines_count(response: &Parts) -> Verdict {
    match response.status.as_u16() {
        402 | 200..=202 => Verdict::Store,
        _ => Verdict::Release,
    }
}

#[idempotent(verdict = declines_count)]
async fn judged(State(runs): State<Runs>, status: String) -> Response {
    let _ = runs.add();
    StatusCode::from_bytes(status.as_bytes())
        .unwrap()
        .into_response()
}

#[tokio::test]
async fn a_verdict_that_panics_frees_no_key() {
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .verdict(|_| panic!("boom"))
        .build()
        .unwrap();
    let runs = Runs::default();
    let app = Router::new()
        .route("/", post(decided))
        .with_state(runs.clone())
        .layer(CatchPanicLayer::new())
        .layer(axum::Extension(runtime));
    assert_eq!(send(&app, keyed("/", "k", "201")).await.status, 500);
    let again = send(&app, keyed("/", "k", "201")).await;
    assert_eq!(again.problem(), "urn:idempotency:response-unavailable");
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn the_verdict_decides_what_is_stored() {
    let kept = async |app: &Router, path: &str, status: &str| {
        send(app, keyed(path, status, status.to_owned())).await;
        send(app, keyed(path, status, status.to_owned()))
            .await
            .outcome()
            == (status.parse().unwrap(), true)
    };
    let router = |runs: &Runs| {
        Router::new()
            .route("/", post(decided))
            .route("/judged", post(judged))
            .with_state(runs.clone())
    };
    let runs = Runs::default();
    let app = Embedded::shared().on(router(&runs));
    for (status, stored) in [
        ("200", true),
        ("204", true),
        ("299", true),
        ("303", false),
        ("402", false),
        ("500", false),
    ] {
        assert_eq!(kept(&app, "/", status).await, stored, "{status}");
    }
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .verdict(|response| {
            if response.status == 303 {
                Verdict::Store
            } else {
                Verdict::Release
            }
        })
        .build()
        .unwrap();
    let app = router(&Runs::default()).layer(axum::Extension(runtime));
    for (path, status, stored) in [
        ("/", "303", true),
        ("/", "200", false),
        ("/judged", "402", true),
        ("/judged", "204", false),
        ("/judged", "303", false),
    ] {
        assert_eq!(kept(&app, path, status).await, stored, "{path} {status}");
    }
}
