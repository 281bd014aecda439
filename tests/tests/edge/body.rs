//! Request bodies.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{DefaultBodyLimit, FromRequest, Request, State},
    http::{HeaderMap, Response as Http, StatusCode},
    middleware::map_request,
    routing::post,
};
use futures_util::StreamExt;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Limited, StreamBody};
use idempotent_runtime::{Caller, Settings, idempotent};
use idempotent_tests::http::{Embedded, Runs, chunked, keyed, post as post_to, send};

const MIB: usize = 1024 * 1024;

#[idempotent(ignore("/sentAt"))]
async fn lenient(State(runs): State<Runs>, _body: String) -> String {
    runs.add().to_string()
}

#[idempotent]
async fn bytes(State(runs): State<Runs>, body: Bytes) -> String {
    format!("{} {}", runs.add(), body.len())
}

#[idempotent]
async fn raw(State(runs): State<Runs>, request: Request) -> Result<String, StatusCode> {
    let body = to_bytes(request.into_body(), usize::MAX)
        .await
        .map_err(|_| StatusCode::IM_A_TEAPOT)?;
    Ok(format!("{} {}", runs.add(), body.len()))
}

#[idempotent]
async fn unread(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent]
async fn trailers(State(runs): State<Runs>, request: Request) -> String {
    let body = request.into_body().collect().await.unwrap();
    let sum = body.trailers().and_then(|trailers| trailers.get("x-sum"));
    format!("{} {sum:?}", runs.add())
}

fn app() -> (Router, Runs) {
    with(Settings::default())
}

fn with(settings: Settings) -> (Router, Runs) {
    let runs = Runs::default();
    let router = Router::new()
        .route("/lenient", post(lenient))
        .route("/bytes", post(bytes))
        .route("/large", post(bytes).layer(DefaultBodyLimit::max(32 * MIB)))
        .route("/raw", post(raw))
        .route("/unread", post(unread))
        .route("/trailers", post(trailers))
        .with_state(runs.clone());
    (Embedded::with(Caller::shared(), settings).on(router), runs)
}

/// What is no JSON under a key whose first request was JSON is another request: 422, not a 503
/// that asks the client to retry for ever.
#[tokio::test]
async fn another_request_under_ignore_is_refused_whatever_its_form() {
    for (one, other) in [
        (r#"{"a":1}"#, "a=1"),
        ("a=1", r#"{"a":1}"#),
        (r#"{"a":1}"#, ""),
        (r#"{"a":1}"#, r#"{"a":"\ud800"}"#),
    ] {
        let (app, runs) = app();
        let first = send(&app, keyed("/lenient", "k", one)).await;
        assert_eq!(first.outcome(), (200, false), "{one}");
        let reply = send(&app, keyed("/lenient", "k", other)).await;
        assert_eq!(reply.status, 422, "{one} then {other}: {}", reply.text());
        assert_eq!(runs.count(), 1);
    }
}

/// A limit that a layer outside has put on the body is a 413 with a key as without one.
#[tokio::test]
async fn a_limit_from_outside_is_a_413_too() {
    let (app, runs) = app();
    // what tower-http's `RequestBodyLimitLayer` does to a body whose length it cannot tell
    let app = app.layer(map_request(async |request: Request| {
        request.map(|body| Body::new(Limited::new(body, 1000)))
    }));
    let plain = post_to("/bytes").body(chunked(vec![b'x'; 2000])).unwrap();
    assert_eq!(send(&app, plain).await.status, 413, "axum's own answer");
    let mut wrong = Vec::new();
    for path in ["/bytes", "/raw", "/unread"] {
        for known in [true, false] {
            let body = vec![b'x'; 2000];
            let body = if known {
                Body::from(body)
            } else {
                chunked(body)
            };
            let reply = send(&app, keyed(path, "k", body)).await;
            if reply.status != 413 {
                wrong.push((path, known, reply.status));
            }
        }
    }
    assert_eq!(wrong, []);
    assert_eq!(runs.count(), 0);
}

/// Where an extractor has a limit, that one holds, with and without a key.
#[tokio::test]
async fn a_limit_raised_beyond_max_request_bytes_holds_with_a_key() {
    let (app, _) = app();
    for known in [true, false] {
        let body = || {
            let body = vec![b'x'; 17 * MIB];
            if known {
                Body::from(body)
            } else {
                chunked(body)
            }
        };
        let plain = post_to("/large").body(body()).unwrap();
        assert_eq!(send(&app, plain).await.status, 200);
        let reply = send(&app, keyed("/large", &format!("k{known}"), body())).await;
        assert_eq!(reply.status, 200, "known length {known}: {}", reply.text());
    }
}

/// The trailers of a request reach a handler that takes the whole request.
#[tokio::test]
async fn trailers_of_a_request_are_not_lost() {
    let (app, _) = app();
    let body = || {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        let frames = [
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"body"))),
            Ok(Frame::trailers(trailers)),
        ];
        Body::new(StreamBody::new(futures_util::stream::iter(frames)))
    };
    let plain = send(&app, post_to("/trailers").body(body()).unwrap()).await;
    assert_eq!(plain.text(), "1 Some(\"7\")");
    let reply = send(&app, keyed("/trailers", "k", body())).await;
    assert_eq!(reply.text(), "2 Some(\"7\")");
}

/// A body that says to be short and is not.
struct Liar(usize);

impl http_body::Body for Liar {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1000])))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(5)
    }
}

#[tokio::test]
async fn what_is_buffered_of_a_request_is_bounded_whatever_its_length_says() {
    let (app, runs) = with(Settings::default().max_request_bytes(3000));
    for path in ["/raw", "/unread"] {
        let reply = send(&app, keyed(path, "k", Body::new(Liar(10)))).await;
        assert_eq!(reply.status, 413, "{path}: {}", reply.text());
    }
    assert_eq!(runs.count(), 0);
}

#[idempotent]
async fn lying(State(runs): State<Runs>) -> Http<Body> {
    let _ = runs.add();
    Http::new(Body::new(Liar(10)))
}

#[tokio::test]
async fn what_is_stored_of_a_response_is_bounded_whatever_its_length_says() {
    let runs = Runs::default();
    let settings = Settings::default().max_response_bytes(3000);
    let embedded = Embedded::with(Caller::shared(), settings);
    let app = embedded.on(Router::new()
        .route("/", post(lying))
        .with_state(runs.clone()));
    drop(send(&app, keyed("/", "k", "")).await);
    let again = send(&app, keyed("/", "k", "")).await;
    assert_eq!(again.status, 409, "{} bytes replayed", again.body.len());
}

/// Looks at the body in a task of its own, which keeps the body without asking for more.
struct Peeked;

impl<S: Sync> FromRequest<S> for Peeked {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let mut stream = request.into_body().into_data_stream();
        drop(tokio::spawn(async move {
            let patience = Duration::from_millis(50);
            while let Ok(Some(_)) = tokio::time::timeout(patience, stream.next()).await {}
            // busy with something else
            tokio::time::sleep(Duration::from_mins(10)).await;
            drop(stream);
        }));
        Ok(Self)
    }
}

#[idempotent]
async fn peek(State(runs): State<Runs>, _peeked: Peeked) -> String {
    runs.add().to_string()
}

/// Whoever polled the body last is woken; both sides must be, since that one may have lost
/// interest.
#[tokio::test(start_paused = true)]
async fn a_reader_that_loses_interest_does_not_hang_the_request() {
    let runs = Runs::default();
    let app = Embedded::shared().on(Router::new()
        .route("/", post(peek))
        .with_state(runs.clone()));
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, Infallible>>(1);
    let body = futures_util::stream::unfold(receiver, async |mut receiver| {
        let item = receiver.recv().await?;
        Some((item, receiver))
    });
    let sending = tokio::spawn(async move {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            drop(sender.send(Ok(Bytes::from_static(b"x"))).await);
        }
    });
    let request = keyed("/", "k", Body::from_stream(Box::pin(body)));
    let reply = tokio::time::timeout(Duration::from_mins(1), send(&app, request)).await;
    sending.await.unwrap();
    assert_eq!(reply.expect("it hangs").outcome(), (200, false));
}
