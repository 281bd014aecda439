//! The store: what each command does to the slot, in one atomic step.

use super::cast::Id;
use super::protocol::Protocol;
use super::request::{Cause, Guard, Mark, Phase};
use super::rules::{Complete, Mistake, Rule};
use super::state::{Breach, LEASE, Slot, State};

/// What a claim found.
#[derive(Clone, Copy)]
pub(super) enum Claimed {
    /// The key is the caller's.
    Yes,
    /// Another's claim stands.
    Busy,
    /// This request's record stands.
    Done(Id),
    /// A claim or record of another body stands.
    Mismatch,
    /// A lapsed claim stands.
    Unknown,
}

impl Protocol {
    pub(super) fn on_claim(&self, state: &mut State, i: Id) -> Claimed {
        let other_body =
            |by| !self.cast.same_request(i, by) && !self.rules.make(Mistake::ClaimIgnoresBody);
        match state.slot {
            Slot::Vacant => {
                take(state, i);
                Claimed::Yes
            }
            Slot::Claim { by, .. } if by == i && self.rules.keep(Rule::OneToken) => Claimed::Yes,
            Slot::Claim { by, .. } | Slot::Record { by } if other_body(by) => Claimed::Mismatch,
            Slot::Claim { left: 0, .. } => Claimed::Unknown,
            Slot::Claim { .. } => Claimed::Busy,
            Slot::Record { by } => Claimed::Done(by),
        }
    }

    /// Whether the claim is held afterwards.
    pub(super) fn on_renew(&self, state: &mut State, i: Id) -> bool {
        match state.slot {
            Slot::Claim { by, .. } if by == i || self.rules.make(Mistake::RenewTakesAny) => {
                write(state, Slot::Claim { by: i, left: LEASE });
                true
            }
            Slot::Vacant if self.rules.keep(Rule::RenewRestores) => {
                take(state, i);
                if state[i].phase == Phase::Running {
                    state[i].guard = Guard::Claimed;
                }
                true
            }
            Slot::Vacant => {
                state[i].marks.set(Mark::RenewedInVain, true);
                false
            }
            Slot::Claim { .. } | Slot::Record { .. } => false,
        }
    }

    /// The record that answers the request afterwards, if one stands.
    pub(super) fn on_complete(&self, state: &mut State, i: Id) -> Option<Id> {
        state[i].marks.set(Mark::Reported, true);
        let first_wins = self.rules.keep(Rule::FirstSuccess);
        let stores = match state.slot {
            Slot::Record { by } if by == i || !self.rules.make(Mistake::CompleteOverRecord) => {
                return Some(by).filter(|&by| self.cast.same_request(i, by));
            }
            Slot::Record { .. } => true,
            Slot::Vacant => first_wins || self.rules.complete != Complete::Strict,
            Slot::Claim { by, .. } if by == i => true,
            Slot::Claim { by, .. } => {
                let duplicate =
                    self.rules.complete == Complete::OverDuplicate && self.cast.same_request(i, by);
                first_wins || duplicate
            }
        };
        if !stores {
            state[i].marks.set(Mark::Told, true);
            return None;
        }
        if let Some(displaced) = state.slot.claimant().filter(|&by| by != i) {
            state[displaced].gone = match state[i].guard {
                Guard::Unguarded => Cause::FailOpen,
                Guard::None | Guard::Claimed => state[i].gone,
            };
            state.note(Breach::Converted, true);
        }
        state.note(Breach::Resurrected, state[i].gone == Cause::Retention);
        write(state, Slot::Record { by: i });
        let request = &mut state[i];
        request.gone = Cause::None;
        request.guard = Guard::Claimed;
        request.marks.set(Mark::Told, false);
        Some(i)
    }

    pub(super) fn on_release(&self, state: &mut State, i: Id) {
        let frees_any = self.rules.make(Mistake::ReleaseFreesAny);
        if state.slot.claimant().is_some_and(|by| by == i || frees_any) {
            write(state, Slot::Vacant);
        }
    }
}

fn write(state: &mut State, slot: Slot) {
    if state.slot == slot {
        return;
    }
    // The older slot is kept only where a failover can still bring it back: fewer states, nothing lost.
    state.older = if state.faults.failover > 0 {
        state.slot
    } else {
        Slot::Vacant
    };
    if state.slot.owner() != slot.owner() {
        state.orphan_ticks = 0;
    }
    state.slot = slot;
}

fn take(state: &mut State, i: Id) {
    write(state, Slot::Claim { by: i, left: LEASE });
    if state[i].alive() {
        state[i].gone = Cause::None;
    }
}
