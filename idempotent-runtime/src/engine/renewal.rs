//! A claim is renewed for as long as its run lasts, or its report is owed.

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
    schedule::{Duty, Slot},
};
use crate::{
    clock::{self, Instant},
    metrics::Operation,
    store::{BoxFuture, RenewOutcome, Step},
};

/// How soon a renewal is tried again that has failed; shorter where the lease is short.
const AGAIN: Duration = Duration::from_millis(250);

/// The claim of a run, as far as this process knows of it.
pub(crate) struct Renewal {
    request: Arc<Request>,
    /// The commands of one request go out in order: a renewal that arrived after a release would
    /// put the claim back.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// Whether the store may know of the claim by a renewal.
    sent: AtomicBool,
}

struct State {
    slot: Option<Slot>,
    /// When it is due, or would be while a report is on its way.
    due: Instant,
    /// When the lease is over unless it is renewed; `None` for a run without a claim.
    lapses: Option<Instant>,
    /// Whether the handler runs.
    running: bool,
    /// A report is on its way.
    reporting: bool,
    /// When nothing is to be reported any more.
    ends: Option<Instant>,
    lost: bool,
}

impl Renewal {
    /// Begins to renew what `request` has claimed at a time, or would have claimed if the store
    /// could be reached. Nothing is renewed in a store without leases.
    pub(super) fn begin(request: &Arc<Request>, claimed: Option<Instant>) -> Option<Arc<Self>> {
        let remote = request.engine.remote.as_ref()?;
        if !remote.leased {
            return None;
        }
        let now = clock::now();
        let lease = request.policy.lease;
        let due = claimed.map_or_else(|| now + again(lease), |claimed| claimed + lease / 3);
        let renewal = Arc::new(Self {
            request: Arc::clone(request),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                slot: None,
                due,
                lapses: claimed.map(|claimed| claimed + lease),
                running: true,
                reporting: false,
                ends: None,
                lost: false,
            }),
            sent: AtomicBool::new(false),
        });
        renewal.put(remote, due);
        Some(renewal)
    }

    fn put(self: &Arc<Self>, remote: &Remote, due: Instant) {
        let mut state = self.state.lock();
        state.due = due;
        if !state.reporting {
            let duty: Arc<Self> = Arc::clone(self);
            state.slot = Some(remote.renewals.put(due, duty));
        }
    }

    /// Whether the claim has been lost: its lease ran out, or another request or record stands.
    pub(crate) fn lost(&self) -> bool {
        let state = self.state.lock();
        state.lost || state.lapsed(clock::now())
    }

    /// Whether the store may know of the claim by a renewal, so that it must be told of the end.
    pub(super) fn sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Renews no more, from now on; a report may go out once a renewal under way has ended.
    pub(super) fn end(self: &Arc<Self>) -> Step<()> {
        let (slot, lost) = {
            let mut state = self.state.lock();
            let lost = state.lose_if_lapsed(clock::now());
            state.running = false;
            state.reporting = true;
            (state.slot.take(), lost)
        };
        if let Some(lost) = lost {
            self.request.told().lease_lost(lost);
        }
        if let (Some(slot), Some(remote)) = (slot, &self.request.engine.remote) {
            remote.renewals.remove(slot);
        }
        if self.turn.try_lock().is_ok() {
            return Step::Now(());
        }
        let renewal = Arc::clone(self);
        Step::later(async move { drop(renewal.turn.lock().await) })
    }

    /// The report has failed: the claim is renewed until it is tried again, and not after `ends`.
    pub(super) fn resume(self: &Arc<Self>, ends: Instant) {
        if let Some(remote) = &self.request.engine.remote {
            let due = {
                let mut state = self.state.lock();
                state.reporting = false;
                state.ends = Some(ends);
                // Tries of a report do not put it off.
                state.due
            };
            self.put(remote, due);
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
        let answer = self
            .request
            .renew(|| self.sent.store(true, Ordering::Release));
        if let Some(due) = self.renewed(began, &answer.answer().await) {
            self.put(remote, due);
        }
        drop(turn);
    }

    /// When to renew again; not at all where a record stands.
    fn renewed(&self, began: Instant, answer: &Answer<RenewOutcome>) -> Option<Instant> {
        let told = self.request.told();
        let lease = self.request.policy.lease;
        let mut state = self.state.lock();
        let lapsed = state.lose_if_lapsed(began);
        let mut restored = false;
        let (due, lost) = match answer {
            Ok(outcome @ (RenewOutcome::Renewed | RenewOutcome::Restored)) => {
                restored = *outcome == RenewOutcome::Restored && state.lapses.is_some();
                state.lapses = Some(began + lease);
                (Some(began + lease / 3), None)
            }
            // Another may release it, and then it is ours again.
            Ok(RenewOutcome::Lost) => {
                let lost = state.lose("another request of the key holds the claim");
                (Some(clock::now() + lease / 3), lost)
            }
            // Its own perhaps, where the reply to its report was lost.
            Ok(RenewOutcome::Completed(_)) => {
                let lost = state.lose("a record of the key stands already");
                (None, lost)
            }
            Err(_) => (Some(clock::now() + again(lease)), None),
        };
        drop(state);
        if let Err(error) = answer {
            told.degraded(Operation::Renew, error, "the claim is renewed again soon");
        }
        if restored {
            told.restored();
        }
        if let Some(lost) = lapsed.or(lost) {
            told.lease_lost(lost);
        }
        due
    }
}

fn again(lease: Duration) -> Duration {
    AGAIN.min(lease / 10)
}

impl State {
    fn over(&self) -> bool {
        self.reporting || self.ends.is_some_and(|ends| ends <= clock::now())
    }

    fn lapsed(&self, now: Instant) -> bool {
        self.lapses.is_some_and(|lapses| lapses <= now)
    }

    fn lose_if_lapsed(&mut self, now: Instant) -> Option<&'static str> {
        if !self.lapsed(now) {
            return None;
        }
        self.lose("its lease ran out before it could be renewed")
    }

    /// What is to be told of it: once, and only while the handler runs.
    fn lose(&mut self, how: &'static str) -> Option<&'static str> {
        let first = !std::mem::replace(&mut self.lost, true);
        (first && self.running).then_some(how)
    }
}

impl Duty for Renewal {
    fn carry_out(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(self.renew())
    }
}
