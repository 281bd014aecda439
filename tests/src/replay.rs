//! Sends a request to a router, and the retries of it.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    http::Request,
};
use idempotent_runtime::{Caller, IdempotencyRuntime};
use tower::ServiceExt;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Whether the response says that it is a replay.
    pub replayed: bool,
    /// The body as text.
    pub body: String,
}

/// One POST.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// The path.
    pub path: &'a str,
    /// The content type.
    pub content_type: &'a str,
    /// The body.
    pub body: &'a str,
}

impl<'a> Post<'a> {
    /// A POST of JSON.
    #[must_use]
    pub const fn json(path: &'a str, body: &'a str) -> Self {
        Self {
            path,
            content_type: "application/json",
            body,
        }
    }

    /// Sends it, with an idempotency key if there is one.
    ///
    /// # Panics
    /// Where the request cannot be built or the body of the response fails.
    pub async fn send(self, router: &Router, key: Option<&str>) -> Answer {
        let mut request = Request::post(self.path)
            .header("content-type", self.content_type)
            .header("authorization", "Bearer 7");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request
            .body(Body::from(self.body.to_owned()))
            .expect("a request");
        let response = router
            .clone()
            .oneshot(request)
            .await
            .expect("a router never fails");
        let (status, replayed) = (
            response.status().as_u16(),
            response.headers().contains_key("x-idempotent-replay"),
        );
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        Answer {
            status,
            replayed,
            body: String::from_utf8(body.to_vec()).expect("text"),
        }
    }

    /// Sends it without a key, and twice with a fresh one: it has to run, run, and be replayed. Returns what the
    /// run with a key answered.
    ///
    /// # Panics
    /// Where it does not.
    pub async fn runs_and_replays(self, router: &Router) -> Answer {
        static KEYS: AtomicUsize = AtomicUsize::new(0);
        let key = format!(
            "replay-{}-{}",
            std::process::id(),
            KEYS.fetch_add(1, Ordering::Relaxed)
        );
        let plain = self.send(router, None).await;
        let first = self.send(router, Some(&key)).await;
        let again = self.send(router, Some(&key)).await;
        assert!(
            !plain.replayed && !first.replayed,
            "{}: a first request is no replay: {first:?}",
            self.path
        );
        assert_eq!(
            plain.status, first.status,
            "{}: a key changes nothing: {plain:?}, {first:?}",
            self.path
        );
        assert_eq!(
            again,
            Answer {
                replayed: true,
                ..first.clone()
            },
            "{}: the retry is a replay",
            self.path
        );
        first
    }
}

/// The router with a runtime of its own, in which all callers are one.
pub fn protected(router: Router) -> Router {
    router.layer(Extension(IdempotencyRuntime::embedded(Caller::shared())))
}
