//! Routers called without a socket, and what they answer.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Extension, Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{HeaderMap, StatusCode, header, request::Builder},
};
use idempotent_runtime::{Caller, IdempotencyRuntime, MemoryStore, Settings};
use tower::ServiceExt;

/// How often a handler has run.
#[derive(Debug, Clone, Default)]
pub struct Runs(Arc<AtomicUsize>);

impl Runs {
    /// Counts a run; which one it is, from 1.
    #[must_use]
    pub fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// An embedded runtime, and the store that it writes to.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// To be put on a router.
    pub runtime: IdempotencyRuntime,
    /// To look into.
    pub store: MemoryStore,
}

impl Embedded {
    /// All callers are one.
    #[must_use]
    pub fn shared() -> Self {
        Self::with(Caller::shared(), Settings::default())
    }

    /// A runtime with these settings.
    ///
    /// # Panics
    ///
    /// When they are out of bounds.
    #[must_use]
    pub fn with(caller: Caller, settings: Settings) -> Self {
        let store = MemoryStore::new();
        let runtime = IdempotencyRuntime::builder()
            .caller(caller)
            .settings(settings)
            .store(store.clone())
            .build();
        Self {
            runtime: runtime.expect("settings in bounds"),
            store,
        }
    }

    /// The router with this runtime.
    pub fn on(&self, router: Router) -> Router {
        router.layer(Extension(self.runtime.clone()))
    }
}

/// A POST to be completed.
#[must_use]
pub fn post(path: &str) -> Builder {
    Request::post(path)
}

/// A JSON request with a key.
///
/// # Panics
///
/// When a part is malformed.
#[must_use]
pub fn keyed(path: &str, key: &str, body: impl Into<Body>) -> Request {
    post(path)
        .header("idempotency-key", key)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.into())
        .expect("a valid request")
}

/// A body in chunks of ten thousand bytes, so that its length is not known.
pub fn chunked(body: impl Into<Bytes>) -> Body {
    let body = body.into();
    let chunks: Vec<Result<Bytes, Infallible>> = (0..body.len())
        .step_by(10_000)
        .map(|at| Ok(body.slice(at..body.len().min(at + 10_000))))
        .collect();
    Body::from_stream(futures_util::stream::iter(chunks))
}

/// An answer, read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of its body.
    pub body: Bytes,
}

impl Reply {
    /// Whether it carries the replay header.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.headers
            .get("x-idempotent-replay")
            .is_some_and(|value| value == "true")
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The `type` of a problem; empty where it is none.
    #[must_use]
    pub fn problem(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        json["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and replay header at once.
    #[must_use]
    pub fn outcome(&self) -> (u16, bool) {
        (self.status.as_u16(), self.is_replay())
    }
}

/// The answer to a request.
///
/// # Panics
///
/// When its body breaks off.
pub async fn send(app: &Router, request: Request) -> Reply {
    let response = app
        .clone()
        .oneshot(request)
        .await
        .expect("a router is infallible");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a whole body");
    Reply {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

/// Sends a request whose client hangs up after `patience`.
///
/// # Panics
///
/// When it is answered before that.
pub async fn hang_up(app: &Router, request: Request, patience: Duration) {
    let answered = tokio::time::timeout(patience, app.clone().oneshot(request)).await;
    assert!(answered.is_err(), "answered before the client hung up");
}

/// Waits until something is so, which must be soon.
///
/// # Panics
///
/// When it is not so within ten seconds.
pub async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("it did not happen");
}
