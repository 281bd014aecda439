//! How much of a request body is kept.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    RequestExt,
    body::{Body, Bytes},
    extract::Request,
};
use http_body::{Body as _, Frame};

/// The limit of Axum's extractors where nobody has set another.
const DEFAULT: u64 = 2 * 1024 * 1024;

/// At most as many bytes as `max_request_bytes`, or as a `DefaultBodyLimit` says that was raised
/// above it: what the handler's extractor takes without a key it takes with one.
pub(super) fn most(request: Request, max_request_bytes: usize) -> (Request, usize) {
    let (parts, body) = request.into_parts();
    // Axum tells nobody its limit, but applies it to any body.
    let probe = Request::from_parts(parts, Body::new(Endless)).with_limited_body();
    let (parts, limited) = probe.into_parts();
    let raised = limited.size_hint().upper().filter(|&limit| limit > DEFAULT);
    let raised = raised.and_then(|limit| usize::try_from(limit).ok());
    let most = raised.map_or(max_request_bytes, |limit| limit.max(max_request_bytes));
    (Request::from_parts(parts, body), most)
}

/// A body of unknown length, never read.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
