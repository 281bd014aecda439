//! What is stored of a response, and what comes back.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn},
    response::{AppendHeaders, IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::{Caller, Settings, idempotent};
use idempotent_tests::http::{Embedded, Runs, keyed, send};
use serde_json::{Value, json};
use tower_http::compression::CompressionLayer;

#[idempotent]
async fn status(State(runs): State<Runs>, code: String) -> Response {
    let _ = runs.add();
    let code = StatusCode::from_bytes(code.as_bytes()).unwrap();
    if code == StatusCode::NO_CONTENT {
        code.into_response()
    } else {
        (code, "body").into_response()
    }
}

fn app<H, T>(handler: H, runs: &Runs) -> Router
where
    H: axum::handler::Handler<T, Runs>,
    T: 'static,
{
    Embedded::shared().on(Router::new()
        .route("/", post(handler))
        .with_state(runs.clone()))
}

#[tokio::test]
async fn b048_the_status_is_part_of_the_record() {
    let runs = Runs::default();
    let app = app(status, &runs);
    for code in ["200", "201", "202", "204", "206"] {
        let first = send(&app, keyed("/", code, code)).await;
        let again = send(&app, keyed("/", code, code)).await;
        assert_eq!(
            (first.status.as_str(), again.status, again.is_replay()),
            (code, first.status, true)
        );
        assert_eq!(first.body, again.body);
        if code == "204" {
            assert!(
                again.body.is_empty()
                    && again
                        .headers
                        .get("content-length")
                        .is_none_or(|length| length == "0")
            );
        }
    }
    assert_eq!(runs.count(), 5);
}

#[idempotent]
async fn order(State(runs): State<Runs>) -> (StatusCode, Json<Value>) {
    (StatusCode::CREATED, Json(json!({ "order": runs.add() })))
}

async fn outer(request: axum::extract::Request, next: Next) -> Response {
    static IDS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let mut response = next.run(request).await;
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    response
        .headers_mut()
        .append("x-request-id", HeaderValue::from(id));
    response
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static("accept"));
    response
}

#[tokio::test]
async fn b049_a_replay_is_rebuilt_and_outer_layers_run_afresh() {
    let runs = Runs::default();
    let app = app(order, &runs).layer(from_fn(outer));
    let first = send(&app, keyed("/", "k", "")).await;
    let again = send(&app, keyed("/", "k", "")).await;
    let count = |reply: &idempotent_tests::http::Reply, name: &str| {
        reply.headers.get_all(name).iter().count()
    };
    for reply in [&first, &again] {
        assert_eq!(
            (
                count(reply, "content-type"),
                count(reply, "vary"),
                count(reply, "x-request-id")
            ),
            (1, 1, 1)
        );
        let length = reply
            .headers
            .get("content-length")
            .map(|length| length.to_str().unwrap().parse::<usize>().unwrap());
        assert!(length.is_none_or(|length| length == reply.body.len()));
    }
    assert_ne!(first.headers["x-request-id"], again.headers["x-request-id"]);
}

#[idempotent]
async fn png(State(runs): State<Runs>) -> ([(HeaderName, &'static str); 1], Vec<u8>) {
    let _ = runs.add();
    (
        [(header::CONTENT_TYPE, "image/png")],
        [0x00, 0xff, 0xfe, 0x80, 0x0d, 0x0a].repeat(1707),
    )
}

#[tokio::test]
async fn b050_bodies_are_bytes() {
    let runs = Runs::default();
    let app = app(png, &runs);
    let first = send(&app, keyed("/", "k", "")).await;
    let again = send(&app, keyed("/", "k", "")).await;
    assert_eq!((first.body.len(), again.is_replay()), (10_242, true));
    assert_eq!(
        (again.body, &again.headers["content-type"]),
        (first.body, &first.headers["content-type"])
    );
}

#[idempotent]
async fn stream(State(runs): State<Runs>) -> Response {
    let _ = runs.add();
    let chunks = (0..5).map(|n| Ok::<_, std::io::Error>(Bytes::from(n.to_string())));
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    (StatusCode::CREATED, [(header::LOCATION, "/orders/1")], body).into_response()
}

#[idempotent]
async fn huge(State(runs): State<Runs>) -> (StatusCode, Vec<u8>) {
    let _ = runs.add();
    (StatusCode::OK, vec![b'x'; 65])
}

/// B051: what has no known length takes effect once all the same.
#[tokio::test]
async fn b051_a_response_that_cannot_be_replayed_leaves_a_marker() {
    let runs = Runs::default();
    let settings = Settings::default().max_response_bytes(64);
    let embedded = Embedded::with(Caller::shared(), settings);
    let app = embedded.on(Router::new()
        .route("/stream", post(stream))
        .route("/huge", post(huge))
        .with_state(runs.clone()));
    for (path, body, status, location) in [
        ("/stream", "01234".to_owned(), 201, Some("/orders/1")),
        ("/huge", "x".repeat(65), 200, None),
    ] {
        let first = send(&app, keyed(path, "k", "")).await;
        assert_eq!(
            (first.status.as_u16(), first.text()),
            (status, body),
            "untouched"
        );
        let again = send(&app, keyed(path, "k", "")).await;
        assert_eq!(
            (again.outcome(), again.problem().as_str()),
            ((409, false), "urn:idempotency:response-unavailable")
        );
        assert_eq!(
            again
                .headers
                .get("location")
                .map(|value| value.to_str().unwrap()),
            location
        );
        assert!(!again.headers.contains_key("retry-after"));
        let problem: Value = serde_json::from_slice(&again.body).unwrap();
        assert_eq!(problem["original_status"], status);
    }
    assert_eq!((runs.count(), embedded.store.in_progress()), (2, 0));
}

#[idempotent]
async fn decorated(State(runs): State<Runs>) -> impl IntoResponse {
    let _ = runs.add();
    (
        StatusCode::CREATED,
        AppendHeaders([
            ("location", "/orders/1"),
            ("etag", "\"abc\""),
            ("link", "</a>; rel=next"),
            ("link", "</b>; rel=prev"),
            ("content-language", "de"),
            ("x-custom", "caf\u{e9}"),
            ("set-cookie", "session=secret"),
            ("www-authenticate", "Basic"),
            ("date", "Tue, 01 Jan 2030 00:00:00 GMT"),
            ("connection", "keep-alive, x-hop"),
            ("keep-alive", "timeout=5"),
            ("x-hop", "one connection only"),
            ("upgrade", "h2c"),
        ]),
        "body",
    )
}

#[tokio::test]
async fn b053_the_handlers_headers_come_back_and_only_transient_ones_do_not() {
    let runs = Runs::default();
    let app = app(decorated, &runs);
    let first = send(&app, keyed("/", "k", "")).await;
    let again = send(&app, keyed("/", "k", "")).await;
    assert!(again.is_replay());
    for name in [
        "location",
        "etag",
        "link",
        "content-language",
        "x-custom",
        "content-type",
    ] {
        let values = |reply: &idempotent_tests::http::Reply| {
            reply
                .headers
                .get_all(name)
                .iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert!(!values(&first).is_empty());
        assert_eq!(values(&first), values(&again), "{name}");
    }
    for name in [
        "set-cookie",
        "www-authenticate",
        "date",
        "connection",
        "keep-alive",
        "x-hop",
        "upgrade",
    ] {
        assert!(
            first.headers.contains_key(name) && !again.headers.contains_key(name),
            "{name}"
        );
    }
}

#[idempotent]
async fn follow_up(State(runs): State<Runs>) -> StatusCode {
    // a job that outlives the request
    let task = tokio::spawn(async move { runs.add() });
    task.await.unwrap();
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn b054_a_replay_does_nothing_else() {
    let runs = Runs::default();
    let app = app(follow_up, &runs);
    for n in 0..5 {
        assert_eq!(
            send(&app, keyed("/", "k", "")).await.outcome(),
            (202, n > 0)
        );
    }
    assert_eq!(runs.count(), 1);
}

#[idempotent]
async fn long_json(State(runs): State<Runs>) -> Json<Value> {
    Json(json!({ "order": runs.add(), "text": "lorem ipsum ".repeat(200) }))
}

#[tokio::test]
async fn b055_content_encoding_is_negotiated_anew() {
    let runs = Runs::default();
    let app = app(long_json, &runs).layer(CompressionLayer::new());
    let with = |encoding: &str| {
        let mut request = keyed("/", "k", "");
        request
            .headers_mut()
            .insert("accept-encoding", encoding.parse().unwrap());
        request
    };
    let first = send(&app, with("gzip")).await;
    assert_eq!(
        (
            first.is_replay(),
            first.headers["content-encoding"].as_bytes()
        ),
        (false, &b"gzip"[..])
    );
    let plain = send(&app, with("identity")).await;
    assert!(plain.is_replay() && !plain.headers.contains_key("content-encoding"));
    assert_eq!(
        serde_json::from_slice::<Value>(&plain.body).unwrap()["order"],
        1
    );
    let again = send(&app, with("gzip")).await;
    assert_eq!(
        (
            again.is_replay(),
            again.headers["content-encoding"].as_bytes()
        ),
        (true, &b"gzip"[..])
    );
    assert_eq!(again.body, first.body);
    assert_eq!(runs.count(), 1);
}

#[idempotent]
async fn broken(State(runs): State<Runs>) -> Response {
    let _ = runs.add();
    Response::new(Body::new(BreaksOff(Some(Bytes::from_static(b"half")))))
}

/// A body that promises eight bytes, gives four and fails.
struct BreaksOff(Option<Bytes>);

impl http_body::Body for BreaksOff {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        std::task::Poll::Ready(Some(match self.0.take() {
            Some(half) => Ok(http_body::Frame::data(half)),
            None => Err(std::io::Error::other("the disk is gone")),
        }))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(8)
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_breaks_off_for_the_client_and_is_not_run_again() {
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    let runs = Runs::default();
    let app = app(broken, &runs);
    let mut body = app
        .clone()
        .oneshot(keyed("/", "k", ""))
        .await
        .unwrap()
        .into_body();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "half"
    );
    assert!(body.frame().await.unwrap().is_err());
    assert_eq!(
        send(&app, keyed("/", "k", "")).await.problem(),
        "urn:idempotency:response-unavailable"
    );
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_response_that_panics_while_it_is_read_is_not_run_again() {
    static ARMED: AtomicBool = AtomicBool::new(true);
    struct Panics;
    impl http_body::Body for Panics {
        type Data = Bytes;
        type Error = std::io::Error;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
            assert!(!ARMED.load(Ordering::Relaxed), "boom");
            std::task::Poll::Ready(None)
        }
        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(8)
        }
    }
    #[idempotent]
    async fn panics(State(runs): State<Runs>) -> Response {
        let _ = runs.add();
        (StatusCode::CREATED, Body::new(Panics)).into_response()
    }
    let runs = Runs::default();
    let app = Arc::new(app(panics, &runs));
    let task = tokio::spawn({
        let app = Arc::clone(&app);
        async move { send(&app, keyed("/", "k", "")).await }
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(
        send(&app, keyed("/", "k", "")).await.problem(),
        "urn:idempotency:response-unavailable"
    );
    assert_eq!(runs.count(), 1);
}
