//! From a request to its decision: what this process knows of the key, then what the store says.

mod wait;

use std::{sync::Arc, time::Duration};

use super::{
    Answer, Decision, Refusal,
    lease::Lease,
    register::{Followed, Found, Place, State},
    report::{Owed, Report},
    request::Request,
    work::Phase,
};
use crate::{
    clock::{self, Instant},
    error::{StoreError, StoreErrorKind},
    fingerprint::Fingerprint,
    metrics::Operation,
    record::Record,
    settings::OnStoreFailure,
    store::{BoxFuture, ClaimOutcome, Step},
};

/// A request on its way to a decision.
pub(crate) struct Attempt {
    request: Arc<Request>,
    /// Held while it is the first of this process.
    place: Option<Place>,
    /// Whether it has met a claim of another process. It never runs unguarded then.
    seen: bool,
    /// Whether a claim of its own may stand.
    claimed: bool,
    /// When its latest claim went out, to a store whose claims may lapse.
    asked: Option<Instant>,
}

/// Where a request stands after its first command.
pub(crate) enum Start {
    Decided(Decision),
    Pending(Attempt, Pending),
}

/// What a request awaits before it is decided.
pub(crate) struct Pending(Ahead);

enum Ahead {
    Claim(BoxFuture<Claimed>),
    Busy(Busy),
}

type Claimed = Answer<ClaimOutcome>;

/// What one look at the key said.
enum Look {
    Run { guarded: bool },
    Replay(Arc<Record>),
    Busy(Busy),
    Refuse(Refusal),
}

/// Who is in the way of a request.
enum Busy {
    /// A claim of the same request in the store.
    Claim { lease_left: Option<Duration> },
    /// Another request of this process.
    Behind(Followed),
}

/// What asking for the key comes to.
enum Asked {
    Look(Look),
    Claim(BoxFuture<Claimed>),
}

impl Attempt {
    pub(crate) fn new(request: Request) -> Self {
        Self {
            request: Arc::new(request),
            place: None,
            seen: false,
            claimed: false,
            asked: None,
        }
    }

    /// Claims; decides at once where the store answers at once and nobody is in the way.
    pub(crate) fn start(mut self) -> Start {
        let look = match self.ask() {
            Asked::Look(look) => look,
            Asked::Claim(claim) => return Start::Pending(self, Pending(Ahead::Claim(claim))),
        };
        match look {
            Look::Busy(busy) => Start::Pending(self, Pending(Ahead::Busy(busy))),
            look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => {
                Start::Decided(self.decide(look))
            }
        }
    }

    /// Goes on from a start that could not decide at once.
    pub(crate) async fn decided(mut self, pending: Pending, phase: Arc<Phase>) -> Decision {
        let _under_way = self.request.engine.under_way();
        let look = match pending.0 {
            Ahead::Busy(busy) => Look::Busy(busy),
            Ahead::Claim(claim) => self.look(claim.await),
        };
        let look = match look {
            // On the heap: few requests wait, and each one has room for it otherwise.
            Look::Busy(busy) => Box::pin(self.wait(busy, &phase)).await,
            look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => look,
        };
        self.decide(look)
    }

    /// Asks this process, then the store.
    fn ask(&mut self) -> Asked {
        while let (Some(remote), None) = (&self.request.engine.remote, &self.place) {
            let (key, fingerprint) = (self.request.key, self.request.fingerprint);
            match remote.register.enter(key, fingerprint) {
                Found::First(place) => self.place = Some(place),
                Found::Other(first) => {
                    if let Some(look) = self.behind(first) {
                        return Asked::Look(look);
                    }
                }
            }
        }
        if let Some(remote) = &self.request.engine.remote {
            remote.go_on();
            if remote.reports.full() {
                self.request.told().backlog();
                return Asked::Look(Look::Refuse(Refusal::Unavailable));
            }
            self.asked = Some(clock::now());
        }
        let claimed = &mut self.claimed;
        let step = self.request.claim(|| *claimed = true);
        match step {
            Step::Now(outcome) => Asked::Look(self.look(outcome)),
            Step::Later(claim) => Asked::Claim(claim),
        }
    }

    /// What another request of this process says; nothing where it has come to nothing.
    fn behind(&mut self, first: Followed) -> Option<Look> {
        Some(match first.state() {
            // It may have to learn that the key is another's.
            State::Asking => Look::Busy(Busy::Behind(first)),
            State::Standing { elsewhere } => {
                if let Some(refusal) = self.compare(first.fingerprint()) {
                    return Some(Look::Refuse(refusal));
                }
                self.seen |= elsewhere;
                Look::Busy(Busy::Behind(first))
            }
            State::Answered(record)
            | State::Gone {
                record: Some(record),
                ..
            } => self.recorded(record),
            State::Gone {
                record: None,
                elsewhere,
            } => {
                self.seen |= elsewhere;
                return None;
            }
        })
    }

    fn recorded(&self, record: Arc<Record>) -> Look {
        match self.compare(record.fingerprint) {
            Some(refusal) => Look::Refuse(refusal),
            None => Look::Replay(record),
        }
    }

    /// The one place through which everything passes that was found at a key.
    fn look(&mut self, outcome: Claimed) -> Look {
        self.claimed = matches!(outcome, Ok(ClaimOutcome::Claimed) | Err(_)) && self.claimed;
        match outcome {
            Ok(ClaimOutcome::Claimed) => Look::Run { guarded: true },
            Ok(ClaimOutcome::Completed(record)) => self.recorded(record),
            Ok(ClaimOutcome::InProgress {
                fingerprint,
                lease_left,
            }) => {
                if let Some(refusal) = self.compare(fingerprint) {
                    return Look::Refuse(refusal);
                }
                self.seen = true;
                if let Some(place) = &self.place {
                    place.stands(true);
                }
                Look::Busy(Busy::Claim { lease_left })
            }
            Ok(ClaimOutcome::Lapsed { fingerprint }) => {
                let refusal = self.compare(fingerprint);
                Look::Refuse(refusal.unwrap_or(Refusal::OutcomeUnknown))
            }
            Err(error) => self.without_store(&error),
        }
    }

    fn compare(&self, found: Fingerprint) -> Option<Refusal> {
        let own = self.request.fingerprint;
        if found.scheme() != own.scheme() {
            let told = self.request.told();
            told.incomparable(found.scheme(), own.scheme());
            return Some(Refusal::Unreadable);
        }
        (found != own).then_some(Refusal::Reused)
    }

    /// What to do when the claim failed. It may have been carried out all the same, so an answer
    /// without a run sends a release behind it.
    fn without_store(&mut self, error: &StoreError) -> Look {
        let request = &self.request;
        let open = request.policy.on_store_failure == OnStoreFailure::Open;
        let (refusal, so) = match error.kind() {
            StoreErrorKind::Unreadable => (
                Refusal::Unreadable,
                "refused with 503, because a record may be what stands at the key",
            ),
            // It can be reached, and a claim of the same request may stand there.
            StoreErrorKind::Full => (Refusal::Unavailable, "refused with 503"),
            // Somebody runs, or did a moment ago: never beside them.
            StoreErrorKind::Unavailable if self.seen => (
                Refusal::InFlight,
                "refused with 409, because another attempt was in progress",
            ),
            StoreErrorKind::Unavailable if open => {
                let so = "the handler runs without the guarantee (`on_store_failure = \"open\"`)";
                request.told().degraded(Operation::Claim, error, so);
                return Look::Run { guarded: false };
            }
            StoreErrorKind::Unavailable => (
                Refusal::Unavailable,
                "refused with 503 (`on_store_failure = \"closed\"`)",
            ),
        };
        request.told().degraded(Operation::Claim, error, so);
        self.take_back();
        Look::Refuse(refusal)
    }

    /// Sends a release behind a claim that may stand.
    fn take_back(&mut self) {
        if std::mem::take(&mut self.claimed) {
            Report::later(&self.request, Owed::Release, None, None);
        }
    }

    async fn ask_again(&mut self) -> Look {
        match self.ask() {
            Asked::Look(look) => look,
            Asked::Claim(claim) => self.look(claim.await),
        }
    }

    fn decide(mut self, look: Look) -> Decision {
        match look {
            Look::Run { guarded } if self.request.engine.capacity.take() => {
                let request = Arc::clone(&self.request);
                let claimed = std::mem::take(&mut self.claimed);
                let asked = self.asked.filter(|_| guarded);
                let place = self.place.take();
                Decision::Run(Lease::new(request, place, guarded, asked, claimed))
            }
            Look::Run { .. } => {
                self.take_back();
                Decision::Refuse(Refusal::Overloaded)
            }
            Look::Replay(record) => {
                if let Some(place) = self.place.take() {
                    place.leave(Some(Arc::clone(&record)));
                }
                Decision::Replay(record)
            }
            Look::Busy(_) => Decision::Refuse(Refusal::InFlight),
            Look::Refuse(refusal) => Decision::Refuse(refusal),
        }
    }
}

impl Drop for Attempt {
    /// What is dropped while its claim is under way has no decision.
    fn drop(&mut self) {
        self.take_back();
    }
}
