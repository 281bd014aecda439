//! What a step means for the promises: noted when it is taken, read by the properties alone.

use super::cast::Id;
use super::protocol::Protocol;
use super::request::{Cause, Command, Guard, Mark, Phase};
use super::state::{Breach, Slot, State};

impl Protocol {
    /// Request `i` is about to run under `guard`: was there a reason not to, and what explains that it can?
    pub(super) fn note_run(&self, state: &mut State, i: Id, guard: Guard) {
        for j in self.cast.others(i) {
            let other = state[j];
            let running = other.phase == Phase::Running;
            if !running && !other.has(Mark::Effect) {
                continue;
            }
            let unguarded = guard == Guard::Unguarded;
            let why = if unguarded || other.guard == Guard::Unguarded {
                Cause::FailOpen
            } else {
                other.gone
            };
            state.note(Breach::Unexplained, why == Cause::None);
            if !self.cast.same_request(i, j) {
                continue;
            }
            state[i].why = why;
            let expired = why == Cause::Retention;
            let knew = self.cast.same_replica(i, j) && other.has(Mark::Remembered);
            let unreported = other.phase == Phase::Finished && !other.has(Mark::Reported);
            let renewed = running && other.has(Mark::RenewedInVain);
            state.note(Breach::RanAfterTold, other.has(Mark::Told) && !expired);
            state.note(Breach::RanAfterUnreported, !unguarded && unreported);
            state.note(Breach::RanAfterRenewal, !unguarded && renewed);
            state.note(Breach::RanTwiceInReplica, unguarded && knew && !expired);
        }
        let saw_busy = state[i].has(Mark::SawBusy);
        state.note(Breach::RanAfterBusy, guard == Guard::Unguarded && saw_busy);
        let over_other = (state.slot.owner()).is_some_and(|by| !self.cast.same_request(i, by));
        state.note(Breach::RanOverOtherBody, over_other);
    }
}

/// Request `i` had `command` carried out where `before` stood: did it change what is another's?
pub(super) fn note_touch(state: &mut State, i: Id, command: Command, before: Slot) {
    let anothers = before.owner().is_some_and(|by| by != i);
    let conversion = command == Command::Complete && before.claimant().is_some();
    let touched = anothers && state.slot != before && !conversion;
    state.note(Breach::TouchedAnothers, touched);
}
