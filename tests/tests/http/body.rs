//! Request bodies: their limits, and what happens over them.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{DefaultBodyLimit, Multipart, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::{Caller, Settings, idempotent};
use idempotent_tests::http::{Embedded, Runs, chunked, keyed, post as post_to, send};

const MIB: usize = 1024 * 1024;

#[idempotent]
async fn json(State(runs): State<Runs>, Json(text): Json<String>) -> String {
    format!("{} {}", runs.add(), text.len())
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
async fn form(State(runs): State<Runs>, mut form: Multipart) -> Result<String, Response> {
    let mut read = 0;
    while let Some(field) = form
        .next_field()
        .await
        .map_err(IntoResponse::into_response)?
    {
        read += field
            .bytes()
            .await
            .map_err(IntoResponse::into_response)?
            .len();
    }
    Ok(format!("{} {read}", runs.add()))
}

fn app(settings: Settings) -> (Embedded, Router, Runs) {
    let embedded = Embedded::with(Caller::shared(), settings);
    let runs = Runs::default();
    let router = Router::new()
        .route("/json", post(json))
        .route("/raw", post(raw))
        .route("/unread", post(unread))
        .route("/form", post(form))
        .route("/small", post(json).layer(DefaultBodyLimit::max(64)))
        .route("/unlimited", post(json).layer(DefaultBodyLimit::disable()))
        .with_state(runs.clone());
    (embedded.clone(), embedded.on(router), runs)
}

/// A JSON text of this many bytes in all.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[tokio::test]
async fn the_extractors_limit_holds_with_and_without_a_key() {
    let (embedded, app, runs) = app(Settings::default());
    for (path, fits, too_large) in [
        ("/json", 2 * MIB, 2 * MIB + 1),
        ("/small", 64, 65),
        ("/unlimited", 3 * MIB, 16 * MIB + 1),
    ] {
        for known in [true, false] {
            let body = |bytes| {
                if known {
                    Body::from(text(bytes))
                } else {
                    chunked(text(bytes))
                }
            };
            let plain = |bytes| {
                post_to(path)
                    .header("content-type", "application/json")
                    .body(body(bytes))
                    .unwrap()
            };
            let key = format!("{path}{known}");
            assert_eq!(send(&app, plain(fits)).await.status, 200, "{path}");
            assert_eq!(
                send(&app, keyed(path, &key, body(too_large))).await.status,
                413,
                "{path} {known}"
            );
            if path != "/unlimited" {
                assert_eq!(send(&app, plain(too_large)).await.status, 413);
            }
            assert_eq!(embedded.store.in_progress(), 0, "nothing was claimed");
            assert_eq!(
                send(&app, keyed(path, &key, body(fits))).await.outcome(),
                (200, false),
                "{path} {known}"
            );
            assert_eq!(
                send(&app, keyed(path, &key, body(fits))).await.outcome(),
                (200, true),
                "{path} {known}"
            );
        }
    }
    assert_eq!(runs.count(), 12);
}

#[tokio::test]
async fn what_has_no_limit_is_bounded_by_max_request_bytes() {
    let (embedded, app, runs) = app(Settings::default().max_request_bytes(100_000));
    for path in ["/raw", "/unread", "/unlimited"] {
        for known in [true, false] {
            let body = |bytes| {
                if known {
                    Body::from(text(bytes))
                } else {
                    chunked(text(bytes))
                }
            };
            let key = format!("{path}{known}");
            let refused = send(&app, keyed(path, &key, body(100_001))).await;
            assert_eq!(refused.status, 413, "{path} {known}");
            assert_eq!(refused.headers["content-type"], "application/problem+json");
            assert!(refused.text().contains("100000"), "{}", refused.text());
            let first = send(&app, keyed(path, &key, body(100_000))).await;
            assert_eq!(
                first.outcome(),
                (200, false),
                "{path} {known}: {}",
                first.text()
            );
            if path == "/raw" {
                assert!(
                    first.text().ends_with(" 100000"),
                    "all of it arrived: {}",
                    first.text()
                );
            }
            assert!(
                send(&app, keyed(path, &key, body(100_000)))
                    .await
                    .is_replay()
            );
            assert_eq!(
                send(&app, keyed(path, &key, body(99_999))).await.status,
                422,
                "an unread body counts too"
            );
        }
    }
    assert_eq!((runs.count(), embedded.store.in_progress()), (6, 0));
    let small = Settings::default().max_request_bytes(10);
    let (_, app, _) = self::app(small);
    assert_eq!(
        send(&app, keyed("/raw", "k", "x".repeat(11))).await.status,
        413,
        "below 64 KiB too"
    );
    assert_eq!(
        send(&app, keyed("/raw", "k", "x".repeat(10))).await.status,
        200
    );
}

#[tokio::test]
async fn a_form_that_is_read_by_the_handler_keeps_its_limit() {
    let (_, app, runs) = app(Settings::default());
    let request = |bytes: usize| {
        let body = format!(
            "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{}\r\n--b--\r\n",
            "x".repeat(bytes)
        );
        let request = post_to("/form").header("content-type", "multipart/form-data; boundary=b");
        request
            .header("idempotency-key", bytes.to_string())
            .body(Body::from(body))
            .unwrap()
    };
    assert_eq!(send(&app, request(3 * MIB)).await.status, 413);
    let first = send(&app, request(MIB)).await;
    assert_eq!(
        (first.outcome(), first.text()),
        ((200, false), format!("1 {MIB}"))
    );
    assert!(send(&app, request(MIB)).await.is_replay());
    assert_eq!(runs.count(), 1);
}

/// B136: the server stops reading soon after the extractor's limit.
#[tokio::test]
async fn b136_a_body_without_an_end_is_refused_at_the_limit() {
    let (embedded, app, runs) = app(Settings::default());
    let endless = |read: Arc<AtomicUsize>| {
        let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
        Body::from_stream(futures_util::stream::repeat_with(move || {
            read.fetch_add(chunk.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(chunk.clone())
        }))
    };
    for (path, most) in [
        ("/json", 2 * MIB),
        ("/raw", 16 * MIB),
        ("/unread", 16 * MIB),
    ] {
        let read = Arc::new(AtomicUsize::new(0));
        assert_eq!(
            send(&app, keyed(path, "k", endless(Arc::clone(&read))))
                .await
                .status,
            413,
            "{path}"
        );
        let read = read.load(Ordering::Relaxed);
        assert!(read <= most + 128 * 1024, "{path}: read {read}");
    }
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
    assert_eq!(
        send(&app, keyed("/json", "k", text(10))).await.outcome(),
        (200, false)
    );
}

#[tokio::test]
async fn a_limit_of_a_layer_is_a_413_too() {
    let (embedded, app, _) = app(Settings::default());
    let app = app.layer(tower_http::limit::RequestBodyLimitLayer::new(100_000));
    for path in ["/raw", "/unread"] {
        for body in [Body::from(text(100_001)), chunked(text(100_001))] {
            let reply = send(&app, keyed(path, "k", body)).await;
            assert_eq!(reply.status, 413, "{path}");
        }
    }
    assert_eq!(embedded.store.len(), 0);
}

#[tokio::test]
async fn a_body_that_breaks_off_claims_nothing() {
    let (embedded, app, runs) = app(Settings::default());
    for path in ["/json", "/raw", "/unread"] {
        let chunks = [
            Ok(Bytes::from_static(b"\"half")),
            Err(std::io::Error::other("gone")),
        ];
        let body = Body::from_stream(futures_util::stream::iter(chunks));
        assert_eq!(
            send(&app, keyed(path, "k", body)).await.status,
            400,
            "{path}"
        );
    }
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
}
