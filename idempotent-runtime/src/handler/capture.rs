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

use super::body::{Buffer, Filled};
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
        Some(_) => return Capture::new(parts, body, fingerprint, most).start(),
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

impl Capture {
    fn new(parts: Parts, body: Body, fingerprint: Fingerprint, most: usize) -> Self {
        Self {
            parts,
            body,
            buffer: Buffer::of(most),
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

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Filled> {
        self.buffer.poll_fill(&mut self.body, cx)
    }

    fn finish(mut self, filled: Filled) -> (Record, Response) {
        let bytes = self.buffer.take();
        let (parts, fingerprint) = (self.parts, self.fingerprint);
        if let Filled::Whole(None) = filled {
            // An exact copy: a slice would keep the whole buffer it is part of.
            let stored = RecordBody::Stored(Bytes::copy_from_slice(&bytes));
            let record = Record::new(fingerprint, parts.status, kept(&parts.headers), stored);
            return (record, Response::from_parts(parts, Body::from(bytes)));
        }
        // The first client sees what it would have seen.
        let (reason, rest) = match filled {
            // Trailers are no part of a record.
            Filled::Whole(trailers) => ("unknown_length", Rest::Trailers(trailers)),
            Filled::Over(data) => ("too_large", Rest::More(Some(data), self.body)),
            Filled::Broken(error) => ("unknown_length", Rest::Error(Some(error))),
        };
        let record = marker(&parts, fingerprint, reason);
        let body = Body::new(Read {
            bytes: Some(bytes),
            rest,
        });
        (record, Response::from_parts(parts, body))
    }
}

/// The headers that a replay sends again: all but those of one connection, one client or one moment.
fn kept(headers: &HeaderMap) -> Box<[(HeaderName, HeaderValue)]> {
    let connection = headers.contains_key(header::CONNECTION);
    let keep = |name: &HeaderName| {
        let of_connection = connection && is_named_by_connection(headers, name);
        !of_connection && !is_transient(name)
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

/// Of one connection because a line of `Connection` says so.
fn is_named_by_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let lines = headers.get_all(header::CONNECTION).iter();
    let mut names = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    names.any(|other| {
        other
            .trim_ascii()
            .eq_ignore_ascii_case(name.as_str().as_bytes())
    })
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

/// A body that has been read in part: what was read, then the rest.
struct Read {
    bytes: Option<Bytes>,
    rest: Rest,
}

enum Rest {
    Trailers(Option<HeaderMap>),
    Error(Option<axum::Error>),
    More(Option<Bytes>, Body),
}

impl http_body::Body for Read {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        Poll::Ready(match &mut self.rest {
            Rest::Trailers(trailers) => trailers
                .take()
                .map(|trailers| Ok(Frame::trailers(trailers))),
            Rest::Error(error) => error.take().map(Err),
            Rest::More(data @ Some(_), _) => data.take().map(|data| Ok(Frame::data(data))),
            Rest::More(None, body) => return Pin::new(body).poll_frame(cx),
        })
    }
}
