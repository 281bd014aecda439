//! A response as the record that will be replayed: which headers, and whether there is a body to
//! keep.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header, response::Parts},
    response::Response,
};
use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, Full};

use super::body::Buffer;
use crate::{
    fingerprint::Fingerprint,
    metrics,
    record::{Record, RecordBody},
    store::Step,
};

/// The record of a response, and the response as it goes to the first client.
///
/// Nearly every body of a known length is there already, so this seldom has to wait.
pub(super) fn capture(
    parts: Parts,
    body: Body,
    fingerprint: Fingerprint,
    most: usize,
) -> Step<(Record, Response)> {
    let reason = match body.size_hint().exact() {
        None => "unknown_length",
        Some(length) if length > most as u64 => "too_large",
        Some(_) => return Capture::new(parts, body, fingerprint).start(),
    };
    let record = marker(&parts, fingerprint, reason);
    Step::Now((record, Response::from_parts(parts, body)))
}

fn marker(parts: &Parts, fingerprint: Fingerprint, reason: &'static str) -> Record {
    metrics::unreplayable(reason);
    let location = parts.headers.get(header::LOCATION).cloned();
    Record::marker(fingerprint, parts.status, location)
}

/// A body on its way into a record.
struct Capture {
    parts: Parts,
    body: Body,
    buffer: Buffer,
    fingerprint: Fingerprint,
}

/// The end of a body: its trailers, or what broke it off.
type End = Result<Option<HeaderMap>, axum::Error>;

impl Capture {
    fn new(parts: Parts, body: Body, fingerprint: Fingerprint) -> Self {
        Self {
            parts,
            body,
            buffer: Buffer::default(),
            fingerprint,
        }
    }

    fn start(mut self) -> Step<(Record, Response)> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(end) => Step::Now(self.finish(end)),
            // Polled again with a waker that wakes.
            Poll::Pending => Step::later(async move {
                let end = poll_fn(|cx| self.poll(cx)).await;
                self.finish(end)
            }),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.buffer.poll_fill(&mut self.body, cx)
    }

    fn finish(self, end: End) -> (Record, Response) {
        let bytes = self.buffer.finish();
        let (parts, fingerprint) = (self.parts, self.fingerprint);
        match end {
            Ok(None) => {
                // An exact copy: a slice would keep the whole buffer it is part of.
                let stored = RecordBody::Stored(Bytes::copy_from_slice(&bytes));
                let record = Record::new(fingerprint, parts.status, kept(&parts.headers), stored);
                (record, Response::from_parts(parts, Body::from(bytes)))
            }
            // Trailers are no part of a record.
            Ok(Some(trailers)) => {
                let record = marker(&parts, fingerprint, "unknown_length");
                let body = Full::new(bytes).with_trailers(async { Some(Ok(trailers)) });
                (record, Response::from_parts(parts, Body::new(body)))
            }
            // The first client sees what it would have seen: a body that breaks off.
            Err(error) => {
                let record = marker(&parts, fingerprint, "unknown_length");
                let body = Body::new(Broken {
                    bytes: Some(bytes),
                    error: Some(error),
                });
                (record, Response::from_parts(parts, body))
            }
        }
    }
}

/// The headers that a replay sends again: all but those of one connection, one client or one moment.
fn kept(headers: &HeaderMap) -> Box<[(HeaderName, HeaderValue)]> {
    let named = headers
        .get(header::CONNECTION)
        .and_then(|value| value.to_str().ok());
    let keep = |name: &HeaderName| {
        !is_transient(name)
            && named.is_none_or(|named| {
                !named
                    .split(',')
                    .any(|other| name.as_str().eq_ignore_ascii_case(other.trim()))
            })
    };
    let mut kept = Vec::with_capacity(headers.keys().filter(|name| keep(name)).count());
    kept.extend(
        headers
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    kept.into_boxed_slice()
}

fn is_transient(name: &HeaderName) -> bool {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
    [
        header::SET_COOKIE,
        header::WWW_AUTHENTICATE,
        header::DATE,
        header::CONTENT_LENGTH,
        // hop-by-hop (RFC 9110, section 7.6.1)
        header::CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ]
    .contains(name)
}

/// A body that failed, as far as it came.
struct Broken {
    bytes: Option<Bytes>,
    error: Option<axum::Error>,
}

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Poll::Ready(match self.bytes.take() {
            Some(bytes) => Some(Ok(Frame::data(bytes))),
            None => self.error.take().map(Err),
        })
    }
}
