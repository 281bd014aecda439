//! A response as the record that will be replayed: which headers, and whether there is a body to
//! keep.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header, response::Parts},
    response::Response,
};
use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;

use super::body::Buffer;
use crate::{
    fingerprint::Fingerprint,
    metrics,
    record::{Record, RecordBody},
};

/// The record of a response, and the response as it goes to the first client.
pub(super) async fn capture(
    parts: Parts,
    mut body: Body,
    fingerprint: Fingerprint,
    most: usize,
) -> (Record, Response) {
    let marker = |parts: &Parts, reason| {
        metrics::unreplayable(reason);
        Record::marker(
            fingerprint,
            parts.status,
            parts.headers.get(header::LOCATION).cloned(),
        )
    };
    let Some(length) = body.size_hint().exact() else {
        return (
            marker(&parts, "unknown_length"),
            Response::from_parts(parts, body),
        );
    };
    if length > most as u64 {
        return (
            marker(&parts, "too_large"),
            Response::from_parts(parts, body),
        );
    }
    let mut buffer = Buffer::default();
    let filled = poll_fn(|cx| buffer.poll_fill(&mut body, cx)).await;
    let bytes = buffer.finish();
    match filled {
        Ok(None) => {
            // An exact copy: a slice would keep the whole buffer it is part of.
            let stored = RecordBody::Stored(Bytes::copy_from_slice(&bytes));
            let record = Record::new(fingerprint, parts.status, kept(&parts.headers), stored);
            (record, Response::from_parts(parts, Body::from(bytes)))
        }
        // Trailers are no part of a record.
        Ok(Some(trailers)) => {
            let body = http_body_util::Full::new(bytes).with_trailers(async { Some(Ok(trailers)) });
            (
                marker(&parts, "unknown_length"),
                Response::from_parts(parts, Body::new(body)),
            )
        }
        // The first client sees what it would have seen: a body that breaks off.
        Err(error) => {
            let body = Body::new(Broken {
                bytes: Some(bytes),
                error: Some(error),
            });
            (
                marker(&parts, "unknown_length"),
                Response::from_parts(parts, body),
            )
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
