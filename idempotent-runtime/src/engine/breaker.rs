//! Whether the store is asked at all: one that is down costs a request nothing.
//!
//! It opens on a command that is not answered while none is, or on several failures in a row, and
//! stays open until a [probe](crate::store::Store::probe) finds that the store works. While it is
//! open nothing is sent.

use std::{
    error::Error,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Notify, time};

use super::Answer;
use crate::{
    clock::{self, Instant},
    error::{StoreError, StoreErrorKind},
    store::Store,
};

/// How many failures in a row open it. They come at once, so that waiting for more of them costs
/// little; an answer that does not come costs `store_timeout`, so one is enough.
const FAILURES: u32 = 3;
/// The pauses between probes. Half a second, because a store that is back should be used again
/// within two, a slow probe included.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long a probe may take at least: it opens a connection, with TLS perhaps.
const SHORTEST_LIMIT: Duration = Duration::from_millis(500);

pub(super) struct Breaker {
    store: Arc<dyn Store>,
    limit: Duration,
    open: AtomicBool,
    /// Failures since the last success.
    failures: AtomicU32,
    /// Answers so far: a command that is late while others are answered says nothing of the store.
    answers: AtomicU64,
    /// How often it has closed: what was sent before says nothing of now.
    epoch: AtomicU64,
    probing: AtomicBool,
    state: Mutex<State>,
    closed: Notify,
}

#[derive(Default)]
struct State {
    since: Option<Instant>,
    /// How long the first probe waits: longer where earlier ones have promised too much.
    pause: Duration,
}

impl Breaker {
    pub(super) fn new(store: Arc<dyn Store>, store_timeout: Duration) -> Self {
        Self {
            store,
            limit: store_timeout.max(SHORTEST_LIMIT),
            open: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            answers: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            probing: AtomicBool::new(false),
            state: Mutex::default(),
            closed: Notify::new(),
        }
    }

    /// A command that may be sent; `None` while the store is down.
    pub(super) fn send(self: &Arc<Self>) -> Option<Sent> {
        self.allows().then(|| Sent {
            answers: self.answers.load(Ordering::Relaxed),
            epoch: self.epoch.load(Ordering::Acquire),
            breaker: Arc::clone(self),
        })
    }

    fn allows(self: &Arc<Self>) -> bool {
        !self.open.load(Ordering::Acquire) || !self.ensure_probing()
    }

    /// Since when the store is known to be down.
    pub(super) fn down_since(&self) -> Option<Instant> {
        self.state.lock().since
    }

    fn failed(self: &Arc<Self>, error: &StoreError) {
        if self.failures.fetch_add(1, Ordering::AcqRel) + 1 >= FAILURES {
            self.open(error);
        }
    }

    #[cold]
    fn open(self: &Arc<Self>, error: &StoreError) {
        {
            let mut state = self.state.lock();
            if self.open.swap(true, Ordering::AcqRel) {
                return;
            }
            state.since = Some(clock::now());
        }
        tracing::warn!(
            error = error as &(dyn Error + 'static),
            "the idempotency store is down: it is asked again once a probe finds that it works"
        );
        self.ensure_probing();
    }

    /// Begins to probe, unless that is going on; `false` where there is no Tokio runtime to do so.
    #[cold]
    fn ensure_probing(self: &Arc<Self>) -> bool {
        if self.probing.load(Ordering::Acquire) {
            return true;
        }
        let Ok(handle) = Handle::try_current() else {
            return false;
        };
        if !self.probing.swap(true, Ordering::AcqRel) {
            drop(handle.spawn(Probing(Arc::downgrade(self)).run()));
        }
        true
    }

    fn close(&self) {
        let down = {
            let mut state = self.state.lock();
            self.epoch.fetch_add(1, Ordering::AcqRel);
            // The next command has to confirm it.
            self.failures.store(1, Ordering::Release);
            self.open.store(false, Ordering::Release);
            state.since.take().map(|since| clock::now() - since)
        };
        self.closed.notify_waiters();
        tracing::info!(?down, "the idempotency store works again");
    }

    /// Waits until commands are sent again.
    pub(super) async fn until_closed(self: &Arc<Self>) {
        loop {
            let closed = self.closed.notified();
            if self.allows() {
                return;
            }
            closed.await;
        }
    }
}

/// A command on its way.
pub(super) struct Sent {
    breaker: Arc<Breaker>,
    answers: u64,
    epoch: u64,
}

impl Sent {
    pub(super) fn answered<T>(&self, answer: &Answer<T>) {
        let breaker = &self.breaker;
        if let Err(error) = answer
            && error.kind() == StoreErrorKind::Unavailable
        {
            if self.is_current() {
                breaker.failed(error);
            }
            return;
        }
        // It can be reached, whatever it says.
        breaker.answers.fetch_add(1, Ordering::Relaxed);
        if breaker.failures.load(Ordering::Relaxed) != 0 {
            breaker.failures.store(0, Ordering::Release);
            breaker.state.lock().pause = Duration::ZERO;
        }
    }

    /// It has had no answer in its time. One is enough to open the breaker, unless others were
    /// answered meanwhile: then it was slow, as a large response is.
    #[cold]
    pub(super) fn late(&self, limit: Duration) -> StoreError {
        let error = StoreError::unavailable(format!("no answer within {limit:?}"));
        if self.is_current() {
            if self.breaker.answers.load(Ordering::Relaxed) == self.answers {
                self.breaker.open(&error);
            } else {
                self.breaker.failed(&error);
            }
        }
        error
    }

    fn is_current(&self) -> bool {
        self.breaker.epoch.load(Ordering::Acquire) == self.epoch
    }
}

/// The task that probes, for as long as there is a breaker; says so when it ends in any way.
struct Probing(Weak<Breaker>);

impl Drop for Probing {
    fn drop(&mut self) {
        if let Some(breaker) = self.0.upgrade() {
            breaker.probing.store(false, Ordering::Release);
            // Whoever waits for the end begins anew, on a Tokio runtime that still lives.
            breaker.closed.notify_waiters();
        }
    }
}

impl Probing {
    async fn run(self) {
        let Some(mut pause) = self.0.upgrade().map(|breaker| breaker.state.lock().pause) else {
            return;
        };
        loop {
            if !pause.is_zero() {
                time::sleep(pause).await;
            }
            pause = (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            let Some(breaker) = self.0.upgrade() else {
                return;
            };
            breaker.state.lock().pause = pause;
            let probe = time::timeout(breaker.limit, breaker.store.probe().answer()).await;
            match probe {
                Ok(Ok(())) => break breaker.close(),
                Ok(Err(error)) => {
                    tracing::debug!(
                        error = &error as &(dyn Error + 'static),
                        "the idempotency store is still down"
                    );
                }
                Err(_) => {
                    tracing::debug!("the idempotency store is still down: no answer to a probe");
                }
            }
        }
    }
}
