//! Whether the store is asked at all: one that is down costs a request nothing.
//!
//! It opens on a command without an answer, or on several failures in a row, and stays open until
//! a [probe](crate::store::Store::probe) finds that the store works. While it is open nothing is
//! sent.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
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
            probing: AtomicBool::new(false),
            state: Mutex::default(),
            closed: Notify::new(),
        }
    }

    /// Whether a command may be sent.
    pub(super) fn allows(self: &Arc<Self>) -> bool {
        !self.open.load(Ordering::Acquire) || !self.ensure_probing()
    }

    /// Since when the store is known to be down.
    pub(super) fn down_since(&self) -> Option<Instant> {
        self.state.lock().since
    }

    pub(super) fn observe<T>(self: &Arc<Self>, answer: &Answer<T>) {
        match answer {
            Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                if self.failures.fetch_add(1, Ordering::AcqRel) + 1 >= FAILURES {
                    self.open(error);
                }
            }
            // It can be reached, whatever it says.
            Ok(_) | Err(_) => {
                if self.failures.load(Ordering::Relaxed) != 0 {
                    self.failures.store(0, Ordering::Release);
                    self.state.lock().pause = Duration::ZERO;
                }
            }
        }
    }

    #[cold]
    pub(super) fn timed_out(self: &Arc<Self>) {
        self.open(&StoreError::unavailable("no answer within `store_timeout`"));
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
            drop(handle.spawn(Probing(Arc::clone(self)).run()));
        }
        true
    }

    fn close(&self) {
        let down = {
            let mut state = self.state.lock();
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

/// The task that probes; says so when it ends in any way.
struct Probing(Arc<Breaker>);

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.probing.store(false, Ordering::Release);
        // Whoever waits for the end begins anew, on a Tokio runtime that still lives.
        self.0.closed.notify_waiters();
    }
}

impl Probing {
    async fn run(self) {
        let breaker = &self.0;
        let mut pause = breaker.state.lock().pause;
        loop {
            if !pause.is_zero() {
                time::sleep(pause).await;
            }
            pause = (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
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
