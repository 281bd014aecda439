//! Reading a body and keeping it.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker, ready},
};

use axum::{BoxError, body::Body, http::HeaderMap};
use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::LengthLimitError;
use parking_lot::Mutex;

/// The data of a body so far. A single frame stays the `Bytes` it came as.
pub(super) struct Buffer {
    most: usize,
    first: Option<Bytes>,
    rest: BytesMut,
}

/// How the reading of a body ended.
pub(super) enum Filled {
    /// At its end, with its trailers.
    Whole(Option<HeaderMap>),
    /// Before data that is more than may be kept, whatever its length was said to be.
    Over(Bytes),
    Broken(axum::Error),
}

impl Buffer {
    /// An empty buffer for at most `most` bytes.
    pub(super) fn of(most: usize) -> Self {
        Self {
            most,
            first: None,
            rest: BytesMut::new(),
        }
    }

    /// Reads to the end.
    pub(super) fn poll_fill(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<Filled> {
        while !body.is_end_stream() {
            let frame = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                None => break,
                Some(Err(error)) => return Poll::Ready(Filled::Broken(error)),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) if data.len() > self.most => return Poll::Ready(Filled::Over(data)),
                Ok(data) => self.push(data),
                Err(frame) => return Poll::Ready(Filled::Whole(frame.into_trailers().ok())),
            }
        }
        Poll::Ready(Filled::Whole(None))
    }

    fn push(&mut self, data: Bytes) {
        self.most -= data.len();
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(data);
            return;
        }
        if let Some(first) = self.first.take() {
            self.rest.extend_from_slice(&first);
        }
        self.rest.extend_from_slice(&data);
    }

    /// What was read.
    pub(super) fn take(&mut self) -> Bytes {
        let first = self.first.take();
        first.unwrap_or_else(|| std::mem::take(&mut self.rest).freeze())
    }
}

/// A body that is read by the handler's extractor and kept on the way.
///
/// Whether that extractor has a limit, reads everything, later or nothing is its own affair. What
/// it has left is read by [`poll_drain`](Self::poll_drain), so that a body is buffered once and
/// under the extractor's limit where it has one.
#[derive(Clone)]
pub(super) struct Tee(Arc<Mutex<State>>);

struct State {
    body: Body,
    kept: Vec<u8>,
    most: usize,
    end: End,
    wakers: Arc<Wakers>,
    /// Left for the reader by the drain.
    trailers: Option<HeaderMap>,
}

/// Who waits for the next frame. The body wakes both: the one that polled it last may have lost
/// interest.
#[derive(Default)]
struct Wakers {
    reader: Mutex<Option<Waker>>,
    drain: Mutex<Option<Waker>>,
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        for waker in [&self.reader, &self.drain] {
            let waker = waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

enum End {
    Open,
    Whole(Bytes),
    TooLarge,
    /// The error is the extractor's, unless it has read no further.
    Failed {
        error: Option<axum::Error>,
        over_limit: bool,
    },
}

/// Why a body could not be kept.
pub(super) enum Unkept {
    TooLarge,
    Failed { over_limit: bool },
}

/// Whether a layer around the handler has a limit that the body is over.
pub(super) fn is_over_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Who polls: the extractor's reader, or the drain behind it. Usually one after the other; an
/// extractor that reads in a task of its own makes it both.
#[derive(Clone, Copy)]
enum Side {
    Reader,
    Drain,
}

impl Tee {
    /// Splits a body: the extractor's copy, and what is kept of it, at most `most` bytes.
    pub(super) fn new(body: Body, most: usize) -> (Body, Self) {
        let length = body.size_hint().exact();
        let state = State {
            body,
            kept: Vec::new(),
            most,
            end: End::Open,
            wakers: Arc::default(),
            trailers: None,
        };
        let tee = Self(Arc::new(Mutex::new(state)));
        let reader = Reader {
            tee: tee.clone(),
            at: 0,
            length,
        };
        (Body::new(reader), tee)
    }

    /// Whether more came than may be kept, so that the extractor has failed for it.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self.0.lock().end, End::TooLarge)
    }

    /// Reads what the extractor has left; then all bytes.
    pub(super) fn poll_drain(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Unkept>> {
        let mut state = self.0.lock();
        loop {
            match &state.end {
                End::Open => {
                    let frame = ready!(state.poll_more(Side::Drain, cx));
                    if let Some(Ok(trailers)) = frame.map(Frame::into_trailers) {
                        state.trailers = Some(trailers);
                    }
                }
                End::Whole(bytes) => return Poll::Ready(Ok(bytes.clone())),
                End::TooLarge => return Poll::Ready(Err(Unkept::TooLarge)),
                &End::Failed { over_limit, .. } => {
                    return Poll::Ready(Err(Unkept::Failed { over_limit }));
                }
            }
        }
    }
}

impl State {
    /// Takes the next frame of the body and keeps its data; `None` at any kind of end.
    fn poll_more(&mut self, side: Side, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let waker = match side {
            Side::Reader => &self.wakers.reader,
            Side::Drain => &self.wakers.drain,
        };
        *waker.lock() = Some(cx.waker().clone());
        let both = Waker::from(Arc::clone(&self.wakers));
        let frame = ready!(Pin::new(&mut self.body).poll_frame(&mut Context::from_waker(&both)));
        let frame = match frame {
            Some(Ok(frame)) => frame
                .data_ref()
                .is_none_or(|data| self.keep(data))
                .then_some(frame),
            Some(Err(error)) => {
                self.end = End::Failed {
                    over_limit: is_over_limit(&error),
                    error: Some(error),
                };
                None
            }
            None => {
                self.end = End::Whole(std::mem::take(&mut self.kept).into());
                None
            }
        };
        both.wake();
        Poll::Ready(frame)
    }

    fn keep(&mut self, data: &[u8]) -> bool {
        if data.len() > self.most - self.kept.len() {
            self.end = End::TooLarge;
            self.kept = Vec::new();
            return false;
        }
        if self.kept.capacity() - self.kept.len() < data.len() {
            // Doubled at first; later in steps, so that the limit bounds what is allocated.
            let room = self.most - self.kept.len();
            let growth = self.kept.len().min(MOST_GROWTH).min(room);
            self.kept.reserve_exact(data.len().max(growth));
        }
        self.kept.extend_from_slice(data);
        true
    }
}

const MOST_GROWTH: usize = 1024 * 1024;

/// The extractor's side of a [`Tee`].
struct Reader {
    tee: Tee,
    at: usize,
    length: Option<u64>,
}

impl http_body::Body for Reader {
    type Data = Bytes;
    // Not wrapped again, so that extractors find what they look for in it.
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let mut state = this.tee.0.lock();
        // What the drain has read already.
        let ahead = match &state.end {
            End::Open => Bytes::copy_from_slice(state.kept.get(this.at..).unwrap_or_default()),
            End::Whole(bytes) => bytes.slice(this.at.min(bytes.len())..),
            End::TooLarge | End::Failed { .. } => Bytes::new(),
        };
        if !ahead.is_empty() {
            this.at += ahead.len();
            return Poll::Ready(Some(Ok(Frame::data(ahead))));
        }
        if matches!(state.end, End::Open)
            && let Some(frame) = ready!(state.poll_more(Side::Reader, cx))
        {
            this.at += frame.data_ref().map_or(0, Bytes::len);
            return Poll::Ready(Some(Ok(frame)));
        }
        Poll::Ready(match &mut state.end {
            End::Open | End::Whole(_) => state.trailers.take().map(|it| Ok(Frame::trailers(it))),
            End::TooLarge => Some(Err("the body is larger than `max_request_bytes`".into())),
            End::Failed { error, .. } => error.take().map(|error| Err(error.into_inner())),
        })
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Some(length) => SizeHint::with_exact(length.saturating_sub(self.at as u64)),
            None => SizeHint::new(),
        }
    }
}
