//! The state machine of one request: claim, wait, run, complete or release.
//!
//! Everything here is compiled once; nothing knows of HTTP but the record's parts.

mod capacity;
mod lease;
mod told;
mod wait;
mod work;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time;

use self::{capacity::Capacity, wait::Waiters};
pub(crate) use self::{
    lease::{Finish, Lease},
    work::{Phase, Work},
};
use crate::{
    error::{StoreError, StoreErrorKind},
    fingerprint::Fingerprint,
    key::StorageKey,
    metrics::{Hot, Operation},
    record::{Record, Token},
    settings::{OnStoreFailure, Settings},
    shared::Shared,
    store::{BoxFuture, Claim, ClaimOutcome, Step, Store},
};

/// What all requests of a runtime share.
pub(crate) struct Engine {
    store: Arc<dyn Store>,
    store_timeout: Duration,
    capacity: Capacity,
    waiters: Waiters,
    pub(crate) hot: Hot,
}

impl Engine {
    pub(crate) fn new(store: Arc<dyn Store>, settings: &Settings) -> Self {
        Self {
            store,
            store_timeout: settings.store_timeout,
            capacity: Capacity::new(settings.max_in_flight),
            waiters: Waiters::new(settings.max_waiters_per_key),
            hot: Hot::default(),
        }
    }

    /// How many handlers run, attached and detached.
    pub(crate) fn in_flight(&self) -> usize {
        self.capacity.taken()
    }

    /// Waits until nothing is under way; how much is when `deadline` has passed.
    pub(crate) async fn drain(&self, deadline: Duration) -> Result<(), usize> {
        self.capacity.drained(deadline).await
    }
}

/// Something that a drain waits for although it is no run.
struct UnderWay(Shared<Engine>);

impl Shared<Engine> {
    fn under_way(&self) -> UnderWay {
        self.capacity.begin_pending();
        UnderWay(self.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.capacity.end_pending();
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
    /// Named in log lines.
    pub(crate) handler: &'static str,
}

/// One keyed request on its way through the engine.
pub(crate) struct Request {
    pub(crate) engine: Shared<Engine>,
    pub(crate) key: StorageKey,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) policy: Policy,
    token: Token,
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

/// What one look at the key said.
enum Look {
    Run {
        guarded: bool,
    },
    Replay(Arc<Record>),
    /// Another attempt of the same request runs.
    Busy {
        lease_left: Option<Duration>,
    },
    Refuse(Refusal),
}

/// Where a request stands after its first command.
pub(crate) enum Start {
    Decided(Decision),
    Pending(Box<Request>, Pending),
}

/// What a request awaits before it is decided.
pub(crate) enum Pending {
    Claim(BoxFuture<Claimed>),
    Wait { lease_left: Option<Duration> },
}

type Claimed = Result<ClaimOutcome, StoreError>;

impl Request {
    pub(crate) fn new(
        engine: Shared<Engine>,
        key: StorageKey,
        fingerprint: Fingerprint,
        policy: Policy,
    ) -> Self {
        Self {
            engine,
            key,
            fingerprint,
            policy,
            token: Token::unique(),
        }
    }

    fn claim(&self) -> Step<Claimed> {
        let claim = Claim::new(self.token, self.fingerprint, self.policy.lease);
        self.engine.store.claim(&self.key, claim)
    }

    /// Claims; decides at once where the store answers at once and nobody is in the way.
    pub(crate) fn start(self: Box<Self>) -> Start {
        let look = match self.claim() {
            Step::Now(outcome) => self.look(outcome, false),
            Step::Later(claim) => return Start::Pending(self, Pending::Claim(claim)),
        };
        match look {
            Look::Busy { lease_left } => Start::Pending(self, Pending::Wait { lease_left }),
            look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => {
                Start::Decided(self.decide(look))
            }
        }
    }

    /// Goes on from a start that could not decide at once.
    pub(crate) async fn decided(self: Box<Self>, pending: Pending, phase: Arc<Phase>) -> Decision {
        let _under_way = self.engine.under_way();
        let mut look = match pending {
            Pending::Wait { lease_left } => Look::Busy { lease_left },
            Pending::Claim(claim) => {
                let outcome = in_time(self.engine.store_timeout, Step::Later(claim)).await;
                self.look(outcome, false)
            }
        };
        if let Look::Busy { lease_left } = look {
            look = self.wait(lease_left, &phase).await;
        }
        self.decide(look)
    }

    /// The one place through which everything passes that was found at a key.
    /// `seen` is whether this request has met another's claim before.
    fn look(&self, outcome: Claimed, seen: bool) -> Look {
        match outcome {
            Ok(ClaimOutcome::Claimed) => Look::Run { guarded: true },
            Ok(ClaimOutcome::Completed(record)) => match self.compare(record.fingerprint) {
                Some(refusal) => Look::Refuse(refusal),
                None => Look::Replay(record),
            },
            Ok(ClaimOutcome::InProgress {
                fingerprint,
                lease_left,
            }) => match self.compare(fingerprint) {
                Some(refusal) => Look::Refuse(refusal),
                None => Look::Busy { lease_left },
            },
            Ok(ClaimOutcome::Lapsed { fingerprint }) => {
                let refusal = self.compare(fingerprint);
                Look::Refuse(refusal.unwrap_or(Refusal::OutcomeUnknown))
            }
            Err(error) => self.without_store(&error, seen),
        }
    }

    fn compare(&self, found: Fingerprint) -> Option<Refusal> {
        let (found_by, expected) = (found.scheme(), self.fingerprint.scheme());
        if found_by != expected {
            self.told().incomparable(found_by, expected);
            return Some(Refusal::Unreadable);
        }
        (found != self.fingerprint).then_some(Refusal::Reused)
    }

    /// What to do when the claim failed. It may have been carried out all the same, so an answer
    /// without a run sends a release behind it.
    fn without_store(&self, error: &StoreError, seen: bool) -> Look {
        let open = self.policy.on_store_failure == OnStoreFailure::Open;
        let (refusal, so) = match error.kind() {
            StoreErrorKind::Unreadable => (
                Refusal::Unreadable,
                "refused with 503, because a record may be what stands at the key",
            ),
            // It can be reached, and a claim of the same request may stand there.
            StoreErrorKind::Full => (Refusal::Unavailable, "refused with 503"),
            // Somebody runs, or did a moment ago: never beside them.
            StoreErrorKind::Unavailable if seen => (
                Refusal::InFlight,
                "refused with 409, because another attempt was in progress",
            ),
            StoreErrorKind::Unavailable if open => {
                let so = "the handler runs without the guarantee (`on_store_failure = \"open\"`)";
                self.told().degraded(Operation::Claim, error, so);
                return Look::Run { guarded: false };
            }
            StoreErrorKind::Unavailable => (
                Refusal::Unavailable,
                "refused with 503 (`on_store_failure = \"closed\"`)",
            ),
        };
        self.told().degraded(Operation::Claim, error, so);
        self.release_in_background();
        Look::Refuse(refusal)
    }

    fn decide(self: Box<Self>, look: Look) -> Decision {
        match look {
            Look::Run { guarded } if self.engine.capacity.take() => {
                Decision::Run(Lease::new(self, guarded))
            }
            Look::Run { .. } => {
                self.release_in_background();
                Decision::Refuse(Refusal::Overloaded)
            }
            Look::Replay(record) => Decision::Replay(record),
            Look::Busy { .. } => Decision::Refuse(Refusal::InFlight),
            Look::Refuse(refusal) => Decision::Refuse(refusal),
        }
    }
}

/// The answer to a command, or an error once `limit` has passed.
async fn in_time<T>(limit: Duration, step: Step<Result<T, StoreError>>) -> Result<T, StoreError> {
    match step {
        Step::Now(answer) => answer,
        Step::Later(command) => time::timeout(limit, command)
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable("no answer within `store_timeout`"))),
    }
}
