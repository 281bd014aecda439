//! A claim that is held, and renewed for as long as its run lasts or its report is owed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Answer, Remote,
    request::Request,
    schedule::{Duty, Rank, Slot},
};
use crate::{
    clock::{self, Instant},
    metrics::Operation,
    store::{BoxFuture, RenewOutcome, Step},
};

/// How soon a renewal is tried again that has failed; shorter where the lease is short.
const AGAIN: Duration = Duration::from_millis(250);

/// The right to run, as far as this process knows of it.
pub(crate) struct Held {
    request: Arc<Request>,
    /// The commands of one request go out in order: a renewal that arrived after a release would
    /// put the claim back.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// Whether the store may know of the claim.
    sent: AtomicBool,
}

struct State {
    slot: Option<Slot>,
    /// The run is over, and its report is on its way.
    reporting: bool,
    /// When nothing is to be reported any more.
    ends: Option<Instant>,
    /// When the lease is over unless it is renewed; `None` for a run without a claim.
    lapses: Option<Instant>,
    lost: bool,
}

impl Held {
    /// Begins to renew what `request` has claimed, or would have if the store could be reached.
    /// Nothing is renewed in a store without leases.
    pub(super) fn begin(request: &Arc<Request>, guarded: bool) -> Option<Arc<Self>> {
        let remote = request.engine.remote.as_ref()?;
        if !remote.leased {
            return None;
        }
        let now = clock::now();
        let lease = request.policy.lease;
        let held = Arc::new(Self {
            request: Arc::clone(request),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                slot: None,
                reporting: false,
                ends: None,
                lapses: guarded.then(|| now + lease),
                lost: false,
            }),
            sent: AtomicBool::new(false),
        });
        let pause = if guarded { lease / 3 } else { held.again() };
        held.renew_at(remote, now + pause);
        Some(held)
    }

    fn again(&self) -> Duration {
        AGAIN.min(self.request.policy.lease / 10)
    }

    fn renew_at(self: &Arc<Self>, remote: &Remote, due: Instant) {
        let mut state = self.state.lock();
        if !state.reporting {
            let rank = match state.ends {
                None => Rank::Running,
                Some(_) => Rank::Over,
            };
            let duty: Arc<Self> = Arc::clone(self);
            state.slot = Some(remote.schedule.put(due, rank, duty));
        }
    }

    /// Whether the claim has been lost: its lease ran out, or another request or record stands.
    pub(crate) fn lost(&self) -> bool {
        let mut state = self.state.lock();
        if state.lapses.is_some_and(|lapses| lapses <= clock::now()) {
            self.lose(&mut state, "its lease ran out before it could be renewed");
        }
        state.lost
    }

    /// Whether the store may know of the claim, so that it must be told of the end.
    pub(super) fn sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    fn lose(&self, state: &mut State, how: &str) {
        if !std::mem::replace(&mut state.lost, true) {
            self.request.told().lease_lost(how);
        }
    }

    /// Renews no more, and waits for a renewal under way: now a report may go out.
    pub(super) fn end(self: &Arc<Self>) -> Step<()> {
        // Seen before the report hides it.
        self.lost();
        let slot = {
            let mut state = self.state.lock();
            state.reporting = true;
            state.slot.take()
        };
        if let (Some(slot), Some(remote)) = (slot, &self.request.engine.remote) {
            remote.schedule.remove(slot);
        }
        if self.turn.try_lock().is_ok() {
            return Step::Now(());
        }
        let held = Arc::clone(self);
        Step::later(async move { drop(held.turn.lock().await) })
    }

    /// The report has failed: the claim is renewed until it is tried again, and not after `ends`.
    pub(super) fn resume(self: &Arc<Self>, ends: Instant) {
        if let Some(remote) = &self.request.engine.remote {
            {
                let mut state = self.state.lock();
                state.reporting = false;
                state.ends = Some(ends);
            }
            self.renew_at(remote, clock::now() + self.request.policy.lease / 3);
        }
    }

    async fn renew(self: Arc<Self>) {
        let Some(remote) = &self.request.engine.remote else {
            return;
        };
        let turn = self.turn.lock().await;
        if self.state.lock().over() {
            return;
        }
        let began = clock::now();
        let (engine, claim) = (&self.request.engine, self.request.claim());
        let step = engine.send(|store| {
            self.sent.store(true, Ordering::Release);
            store.renew(&self.request.key, claim)
        });
        let answer = engine.answer(step).await;
        if let Some(due) = self.renewed(began, answer) {
            self.renew_at(remote, due);
        }
        drop(turn);
    }

    /// When to renew again; not at all where a record stands.
    fn renewed(&self, began: Instant, answer: Answer<RenewOutcome>) -> Option<Instant> {
        let told = self.request.told();
        let lease = self.request.policy.lease;
        let mut state = self.state.lock();
        match answer {
            Ok(outcome @ (RenewOutcome::Renewed | RenewOutcome::Restored)) => {
                if outcome == RenewOutcome::Restored && state.lapses.is_some() {
                    told.restored();
                }
                if state.lapses.is_some_and(|lapses| lapses <= began) {
                    self.lose(&mut state, "its lease ran out before it could be renewed");
                }
                state.lapses = Some(began + lease);
                Some(began + lease / 3)
            }
            // Another may release it, and then it is ours again.
            Ok(RenewOutcome::Lost) => {
                self.lose(&mut state, "another request of the key holds the claim");
                Some(clock::now() + lease / 3)
            }
            Ok(RenewOutcome::Completed(_)) => {
                self.lose(&mut state, "a record of the key stands already");
                None
            }
            Err(error) => {
                told.degraded(Operation::Renew, &error, "the claim is renewed again soon");
                Some(clock::now() + self.again())
            }
        }
    }
}

impl State {
    fn over(&self) -> bool {
        self.reporting || self.ends.is_some_and(|ends| ends <= clock::now())
    }
}

impl Duty for Held {
    fn carry_out(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(self.renew())
    }
}
