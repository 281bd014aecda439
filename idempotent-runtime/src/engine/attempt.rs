//! From a request to its decision: what this process knows of the key, then what the store says.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time};

use super::{
    Answer, Decision, Refusal,
    lease::Lease,
    register::{Found, Place, State},
    report::{Owed, Report},
    request::Request,
    work::Phase,
};
use crate::{
    clock::{self, Instant},
    error::{StoreError, StoreErrorKind},
    fingerprint::Fingerprint,
    metrics::{self, Operation},
    record::Record,
    settings::OnStoreFailure,
    store::{BoxFuture, ClaimOutcome, Step},
};

/// The first pause between two looks at a key that the store does not watch; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The pause where the store wakes its waiters, in case that it does not.
const BACKSTOP: Duration = Duration::from_secs(1);

/// A request on its way to a decision.
pub(crate) struct Attempt {
    request: Arc<Request>,
    /// Held while it is the first of this process.
    place: Option<Place>,
    /// Whether it has met a claim of another process. It never runs unguarded then.
    seen: bool,
    /// Whether a claim has gone out.
    sent: bool,
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
    Behind(Fingerprint, watch::Receiver<State>),
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
            sent: false,
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
            Ahead::Claim(claim) => self.claimed(claim).await,
        };
        let look = match look {
            Look::Busy(busy) => self.wait(busy, &phase).await,
            look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => look,
        };
        self.decide(look)
    }

    /// Asks this process, then the store.
    fn ask(&mut self) -> Asked {
        let request = &self.request;
        if let (Some(remote), None) = (&request.engine.remote, &self.place) {
            match remote.register.enter(request.key, request.fingerprint) {
                Found::First(place) => self.place = Some(place),
                Found::Other(fingerprint, state) => {
                    return Asked::Look(self.behind(fingerprint, state));
                }
            }
        }
        let (request, sent) = (&self.request, &mut self.sent);
        let step = request.engine.send(|store| {
            *sent = true;
            store.claim(&request.key, request.claim())
        });
        match step {
            Step::Now(outcome) => Asked::Look(self.look(outcome)),
            Step::Later(claim) => Asked::Claim(claim),
        }
    }

    async fn claimed(&mut self, claim: BoxFuture<Claimed>) -> Look {
        let outcome = self.request.engine.answer(Step::Later(claim)).await;
        self.look(outcome)
    }

    /// What another request of this process says, unless it has come to nothing.
    fn behind(&mut self, fingerprint: Fingerprint, state: watch::Receiver<State>) -> Look {
        let now = state.borrow().clone();
        match now {
            // It may have to learn that the key is another's.
            State::Asking | State::Gone(None) => Look::Busy(Busy::Behind(fingerprint, state)),
            State::Standing { elsewhere } => {
                if let Some(refusal) = self.compare(fingerprint) {
                    return Look::Refuse(refusal);
                }
                self.seen |= elsewhere;
                Look::Busy(Busy::Behind(fingerprint, state))
            }
            State::Answered(record) | State::Gone(Some(record)) => self.recorded(record),
        }
    }

    fn recorded(&self, record: Arc<Record>) -> Look {
        match self.compare(record.fingerprint) {
            Some(refusal) => Look::Refuse(refusal),
            None => Look::Replay(record),
        }
    }

    /// The one place through which everything passes that was found at a key.
    fn look(&mut self, outcome: Claimed) -> Look {
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
        let full = |remote: &super::Remote| remote.reports.full();
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
            StoreErrorKind::Unavailable
                if open && request.engine.remote.as_ref().is_some_and(full) =>
            {
                (
                    Refusal::Unavailable,
                    "refused with 503, because too many reports of runs without the guarantee wait for it already",
                )
            }
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
    fn take_back(&self) {
        if self.sent {
            Report::later(&self.request, Owed::Release, None, None);
        }
    }

    /// Waits until the key is free or has a record, at most as long as the policy says; then it
    /// is still [`Look::Busy`].
    async fn wait(&mut self, busy: Busy, phase: &Phase) -> Look {
        let look = self.until_asked(busy, phase).await;
        let Look::Busy(mut busy) = look else {
            return look;
        };
        let request = Arc::clone(&self.request);
        let Some(_waiting) = request.engine.waiters.enter(request.key) else {
            return Look::Busy(busy);
        };
        let began = clock::now();
        let deadline = began + request.policy.wait;
        let mut pause = FIRST_PAUSE;
        let look = loop {
            let now = clock::now();
            if now >= deadline || phase.detached() {
                break Look::Busy(busy);
            }
            let look = match busy {
                Busy::Behind(fingerprint, state) => {
                    self.follow(fingerprint, state, deadline, phase).await
                }
                Busy::Claim { lease_left } => {
                    let gone = request.engine.store.watch(&request.key);
                    let turn = if gone.is_some() { BACKSTOP } else { pause };
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    let turn = lease_left.map_or(turn, |left| left.clamp(FIRST_PAUSE, turn));
                    let until = deadline.min(now + turn);
                    phase.waiting(true);
                    match gone {
                        Some(gone) => drop(time::timeout_at(until, gone).await),
                        None => time::sleep_until(until).await,
                    }
                    phase.waiting(false);
                    self.ask_again().await
                }
            };
            match look {
                Look::Busy(still) => busy = still,
                look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => break look,
            }
        };
        metrics::waited(clock::now() - began);
        look
    }

    /// Waits while another request of this process asks the store for the same key: nobody may be in
    /// the way at all, so no limit of waiting counts yet.
    async fn until_asked(&mut self, busy: Busy, phase: &Phase) -> Look {
        let until = clock::now() + self.request.engine.store_timeout;
        let mut look = Look::Busy(busy);
        while let Look::Busy(Busy::Behind(fingerprint, state)) = look {
            if !matches!(*state.borrow(), State::Asking) || until <= clock::now() {
                return Look::Busy(Busy::Behind(fingerprint, state));
            }
            look = self.follow(fingerprint, state, until, phase).await;
        }
        look
    }

    /// Waits until the other request has got on.
    async fn follow(
        &mut self,
        fingerprint: Fingerprint,
        mut state: watch::Receiver<State>,
        until: Instant,
        phase: &Phase,
    ) -> Look {
        phase.waiting(true);
        // An end of the other is a change too.
        drop(time::timeout_at(until, state.changed()).await);
        phase.waiting(false);
        let nothing = matches!(*state.borrow(), State::Gone(None));
        if nothing {
            self.ask_again().await
        } else {
            self.behind(fingerprint, state)
        }
    }

    async fn ask_again(&mut self) -> Look {
        match self.ask() {
            Asked::Look(look) => look,
            Asked::Claim(claim) => self.claimed(claim).await,
        }
    }

    fn decide(mut self, look: Look) -> Decision {
        match look {
            Look::Run { guarded } if self.request.engine.capacity.take() => {
                let Self {
                    request,
                    place,
                    sent,
                    ..
                } = self;
                Decision::Run(Lease::new(request, place, guarded, sent))
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
