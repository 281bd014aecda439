//! What takes a claim or a record away: leases, crashes, stores that forget, retentions.

use super::cast::Id;
use super::engine::finish;
use super::protocol::Protocol;
use super::request::{Answer, Cause, Mark, Phase};
use super::rules::{Mistake, Rule};
use super::state::{Slot, State};

impl Protocol {
    /// A replica dies with all its requests.
    pub(super) fn crash(&self, state: &mut State, replica: u8) {
        state.faults.crash -= 1;
        for i in self.cast.everyone() {
            if self.cast[i].replica != replica {
                continue;
            }
            let request = &mut state[i];
            request.marks.set(Mark::Remembered, false);
            if request.alive() {
                request.phase = Phase::Dead;
                request.forget_tries();
            }
        }
        if self.rules.embedded {
            empty(state, Cause::Crash);
        }
    }

    /// The living holder loses its lease.
    pub(super) fn pause(&self, state: &mut State) {
        state.faults.pause -= 1;
        if let Some(by) = state.slot.claimant() {
            self.lapse(state, by, Cause::Pause);
        }
    }

    /// Time passes for a claim that nobody renews.
    pub(super) fn tick(&self, state: &mut State) {
        let Slot::Claim { by, left } = state.slot else {
            return;
        };
        state.orphan_ticks += 1;
        if left > 1 {
            state.slot = Slot::Claim { by, left: left - 1 };
        } else if state[by].phase == Phase::Dead {
            self.lapse(state, by, Cause::Crash);
        } else {
            self.lapse(state, by, Cause::Undelivered);
        }
    }

    /// A retention is over, so its owner stops reporting; where a claim lapsed and stayed, its owner may still finish.
    pub(super) fn expire(&self, state: &mut State) {
        state.faults.retention -= 1;
        if let Slot::Record { by } = state.slot
            && matches!(state[by].phase, Phase::Completing | Phase::CompleteFailed)
            && !self.rules.make(Mistake::ReportOutlivesRetention)
        {
            finish(state, by, Answer::Own);
        }
        empty(state, Cause::Retention);
    }

    fn lapse(&self, state: &mut State, by: Id, why: Cause) {
        if self.rules.keep(Rule::UnknownOutcome) {
            state.slot = Slot::Claim { by, left: 0 };
        } else {
            empty(state, why);
        }
        if state.older == state.slot {
            state.older = Slot::Vacant;
        }
    }
}

/// The store restarts empty.
pub(super) fn lose_all(state: &mut State) {
    state.faults.loss -= 1;
    empty(state, Cause::Loss);
    state.older = Slot::Vacant;
    state.forget_reports();
}

/// A follower without the last write takes over.
pub(super) fn fail_over(state: &mut State) {
    state.faults.failover -= 1;
    empty(state, Cause::Loss);
    state.slot = std::mem::take(&mut state.older);
    state.forget_reports();
}

/// What stands at the key is taken away, for `why`.
fn empty(state: &mut State, why: Cause) {
    if let Some(by) = state.slot.owner() {
        let owner = &mut state[by];
        if owner.gone == Cause::None {
            owner.gone = why;
        }
        if why == Cause::Retention {
            owner.marks.set(Mark::Remembered, false);
        }
    }
    state.orphan_ticks = 0;
    state.slot = Slot::Vacant;
}
