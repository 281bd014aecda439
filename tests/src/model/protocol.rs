//! One configuration to walk: a design, a budget of faults, and who asks.

use super::cast::{Cast, Id};
use super::faults::Faults;
use super::request::{Command, Mark, Phase};
use super::rules::Rules;
use super::state::State;

/// One configuration to walk.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The design.
    pub rules: Rules,
    /// What may go wrong.
    pub faults: Faults,
    /// Who asks.
    pub cast: Cast,
}

impl Protocol {
    /// A run of this replica, in flight or remembered, that an unguarded request must respect.
    pub(super) fn busy_in_replica(&self, state: &State, i: Id) -> Option<Id> {
        self.cast.others(i).find(|&j| {
            let other = &state[j];
            self.cast.same_replica(i, j)
                && other.has(Mark::Remembered)
                && (other.has(Mark::Effect)
                    || matches!(other.phase, Phase::Running | Phase::Releasing))
        })
    }
}

/// The command that a request in this phase has sent and not heard of yet.
pub(super) const fn pending(phase: Phase) -> Option<Command> {
    match phase {
        Phase::Claiming => Some(Command::Claim),
        Phase::Completing => Some(Command::Complete),
        Phase::Releasing => Some(Command::Release),
        Phase::Idle
        | Phase::ClaimFailed
        | Phase::Waiting
        | Phase::Running
        | Phase::CompleteFailed
        | Phase::ReleaseFailed
        | Phase::Finished
        | Phase::Dead => None,
    }
}
