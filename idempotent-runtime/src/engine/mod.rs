//! The state machine of one request: claim, wait, run, complete or release.
//!
//! Everything here is compiled once; nothing knows of HTTP but the record's parts.

mod attempt;

mod waiters;

mod lease;

mod report;

mod renewal;

mod request;

mod schedule;

mod register;

mod health;

mod breaker;

mod told;

mod capacity;

mod work;

use std::{fmt, sync::Arc, time::Duration};

pub use self::health::{Health, StoreHealth};
pub(crate) use self::{
    attempt::{Attempt, Start},
    lease::{Finish, Lease},
    renewal::Renewal,
    request::Request,
    work::{Phase, Work},
};
use self::{
    breaker::Breaker, capacity::Capacity, register::Register, report::Reports, schedule::Schedule,
    waiters::Waiters,
};
use crate::{
    clock,
    error::StoreError,
    metrics::Hot,
    record::Record,
    settings::{OnLostRun, OnStoreFailure, Settings},
    store::{Level, Step, Store},
};

/// What all requests of a runtime share.
pub(crate) struct Engine {
    store: Arc<dyn Store>,
    store_timeout: Duration,
    capacity: Capacity,
    waiters: Waiters,
    /// What a store needs that can be out of reach; `None` for one in this process.
    remote: Option<Remote>,
    pub(crate) hot: Hot,
}

/// What is kept for the time in which the store cannot be reached.
struct Remote {
    breaker: Arc<Breaker>,
    register: Arc<Register>,
    renewals: Arc<Schedule>,
    reports: Reports,
    /// Apart from the renewals, which a backlog of reports must not hold up.
    reporting: Arc<Schedule>,
    /// Whether claims lapse unless they are renewed.
    leased: bool,
}

impl Remote {
    /// Goes on with what a Tokio runtime has left that has been shut down.
    fn go_on(&self) {
        self.renewals.go_on();
        self.reporting.go_on();
    }
}

type Answer<T> = Result<T, StoreError>;

impl Engine {
    pub(crate) fn new(store: Arc<dyn Store>, settings: &Settings) -> Self {
        let remote = (!store.never_fails()).then(|| {
            let breaker = Arc::new(Breaker::new(Arc::clone(&store), settings.store_timeout));
            Remote {
                renewals: Arc::new(Schedule::new(Arc::clone(&breaker))),
                reporting: Arc::new(Schedule::new(Arc::clone(&breaker))),
                breaker,
                register: Arc::default(),
                reports: Reports::default(),
                leased: store.level() != Level::Embedded,
            }
        });
        Self {
            store,
            store_timeout: settings.store_timeout,
            capacity: Capacity::new(settings.max_in_flight),
            waiters: Waiters::new(settings.max_waiters_per_key),
            remote,
            hot: Hot::default(),
        }
    }

    /// How many handlers run, attached and detached.
    pub(crate) fn in_flight(&self) -> usize {
        self.capacity.taken()
    }

    /// Waits until nothing is under way; how much is when `deadline` has passed.
    pub(crate) async fn drain(&self, deadline: Duration) -> Result<(), usize> {
        if let Some(remote) = &self.remote {
            remote.go_on();
        }
        self.capacity.drained(deadline).await
    }

    /// Sends a command, unless the store is known to be down. It fails once `limit` has passed.
    fn send<T: Send + 'static>(
        &self,
        limit: Duration,
        command: impl FnOnce(&dyn Store) -> Step<Answer<T>>,
    ) -> Step<Answer<T>> {
        let Some(Remote { breaker, .. }) = &self.remote else {
            return command(&*self.store);
        };
        let Some(sent) = breaker.send() else {
            return Step::Now(Err(StoreError::unavailable(
                "not asked, because it failed a moment ago and has not been found to work again",
            )));
        };
        match command(&*self.store) {
            Step::Now(answer) => {
                sent.answered(&answer);
                Step::Now(answer)
            }
            Step::Later(answer) => Step::later(async move {
                match clock::within(limit, answer).await {
                    Some(answer) => {
                        sent.answered(&answer);
                        answer
                    }
                    None => Err(sent.late(limit)),
                }
            }),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("level", &self.store.level())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

/// What decides how one handler's requests are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) on_lost_run: OnLostRun,
    /// Named in log lines.
    pub(crate) handler: &'static str,
}

/// What becomes of a request.
pub(crate) enum Decision {
    /// It runs, and owes the store a report.
    Run(Lease),
    /// It has run before.
    Replay(Arc<Record>),
    /// It neither runs nor replays.
    Refuse(Refusal),
}

/// Why a request is answered without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The key belongs to another request.
    Reused,
    /// Another attempt still runs.
    InFlight,
    /// Another attempt has run, and nobody knows how that ended.
    OutcomeUnknown,
    /// The store failed, and the handler asks for the guarantee.
    Unavailable,
    /// What stands at the key cannot be read or compared.
    Unreadable,
    /// As many handlers run as may.
    Overloaded,
}
