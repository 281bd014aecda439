//! Work that its caller polls while it is there, and a task ends once it is not.
//!
//! Axum drops a handler's future when its client hangs up. What has been claimed must go on all
//! the same, so dropping unfinished work moves it to a task. In a healthy request there is no
//! task: spawning each run was measured to cost half of the throughput.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tracing::{Dispatch, Instrument, Span, instrument::WithSubscriber};

use crate::store::BoxFuture;

/// Where work stands that may have to wait for another request first.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    waiting: AtomicBool,
    detached: AtomicBool,
}

impl Phase {
    pub(super) fn waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    /// Nobody listens any more.
    pub(super) fn detached(&self) -> bool {
        self.detached.load(Ordering::Relaxed)
    }
}

/// A future that goes on in a task of its own when it is dropped before its end.
pub(crate) struct Work<T: Send + 'static> {
    live: Option<BoxFuture<T>>,
    origin: Option<Box<Origin>>,
    phase: Option<Arc<Phase>>,
}

/// What a task needs to be a continuation of the request.
struct Origin {
    span: Span,
    subscriber: Dispatch,
    handle: Option<Handle>,
}

impl<T: Send + 'static> Work<T> {
    /// Work that has claimed or is about to. Dropped in a waiting `phase` it simply ends: it
    /// holds nothing then.
    pub(crate) fn new(live: BoxFuture<T>, phase: Option<Arc<Phase>>) -> Self {
        Self {
            live: Some(live),
            origin: None,
            phase,
        }
    }
}

impl<T: Send + 'static> Future for Work<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out while it is polled: if the poll unwinds, the work is dropped and its claim
        // released; it is never polled again.
        let Some(mut live) = self.live.take() else {
            return Poll::Pending;
        };
        let polled = live.as_mut().poll(cx);
        if polled.is_pending() {
            self.live = Some(live);
            self.origin.get_or_insert_with(|| Box::new(origin()));
        }
        polled
    }
}

#[cold]
fn origin() -> Origin {
    Origin {
        span: Span::current(),
        subscriber: tracing::dispatcher::get_default(Clone::clone),
        handle: Handle::try_current().ok(),
    }
}

impl<T: Send + 'static> Drop for Work<T> {
    fn drop(&mut self) {
        let (Some(live), Some(origin)) = (self.live.take(), self.origin.take()) else {
            return;
        };
        if let Some(phase) = &self.phase {
            if phase.waiting.load(Ordering::Relaxed) {
                return;
            }
            phase.detached.store(true, Ordering::Relaxed);
        }
        detach(live, *origin);
    }
}

#[cold]
fn detach<T: Send + 'static>(live: BoxFuture<T>, origin: Origin) {
    let work = async move { drop(live.await) };
    // The runtime that polled it first: its timers and sockets belong there.
    let Some(handle) = origin.handle.or_else(|| Handle::try_current().ok()) else {
        return;
    };
    drop(
        handle.spawn(
            work.instrument(origin.span)
                .with_subscriber(origin.subscriber),
        ),
    );
}
