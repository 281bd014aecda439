//! The engine: what a request does next, and what its client is told.

use super::cast::Id;
use super::history::note_touch;
use super::protocol::Protocol;
use super::request::{Answer, Command, Guard, Mark, Phase};
use super::rules::{Mistake, Outage, Rule};
use super::state::{Breach, Slot, State};
use super::store::Claimed;

impl Protocol {
    /// The store carries `command` out; where `heard`, its sender learns the outcome.
    pub(super) fn carry_out(&self, state: &mut State, i: Id, command: Command, heard: bool) {
        let before = state.slot;
        match command {
            Command::Claim => {
                let claimed = self.on_claim(state, i);
                if heard {
                    self.claimed(state, i, claimed);
                }
            }
            Command::Renew => {
                let held = self.on_renew(state, i);
                if heard {
                    state[i].marks.set(Mark::Lapsed, !held);
                }
            }
            Command::Complete => {
                let record = self.on_complete(state, i);
                if heard {
                    self.completed(state, i, record);
                }
            }
            Command::Release => {
                self.on_release(state, i);
                if heard {
                    self.released(state, i);
                }
            }
        }
        note_touch(state, i, command, before);
    }

    fn claimed(&self, state: &mut State, i: Id, claimed: Claimed) {
        match claimed {
            Claimed::Yes => self.begin(state, i, Guard::Claimed),
            Claimed::Busy => wait(state, i),
            Claimed::Done(by) => finish(state, i, Answer::Replay(by)),
            Claimed::Mismatch => finish(state, i, Answer::Mismatch),
            Claimed::Unknown => finish(state, i, Answer::Unknown),
        }
    }

    fn completed(&self, state: &mut State, i: Id, record: Option<Id>) {
        let anothers = record.filter(|&by| by != i && self.rules.keep(Rule::AnswerFromRecord));
        finish(state, i, anothers.map_or(Answer::Own, Answer::Replay));
    }

    fn released(&self, state: &mut State, i: Id) {
        let answer = match state.slot {
            Slot::Record { by } if self.cast.same_request(i, by) => {
                if self.rules.keep(Rule::AnswerFromRecord) {
                    Answer::Replay(by)
                } else {
                    let unanswered = state[i].answer == Answer::None;
                    state.note(Breach::FailedBesideSuccess, unanswered);
                    Answer::Failed
                }
            }
            Slot::Vacant | Slot::Claim { .. } | Slot::Record { .. } => Answer::Failed,
        };
        finish(state, i, answer);
    }

    pub(super) fn begin(&self, state: &mut State, i: Id, guard: Guard) {
        self.note_run(state, i, guard);
        let request = &mut state[i];
        request.phase = Phase::Running;
        request.guard = guard;
        request.marks.set(Mark::Retried, false);
        request.marks.set(Mark::SawBusy, false);
        request.marks.set(Mark::Remembered, true);
    }

    /// The handler of `i` has ended.
    pub(super) fn after_run(&self, state: &mut State, i: Id, success: bool) {
        let completes = success || self.rules.make(Mistake::CompleteAfterFailure);
        let request = &mut state[i];
        request.marks.set(Mark::Effect, success);
        request.phase = if completes {
            Phase::Completing
        } else {
            Phase::Releasing
        };
        if request.guard == Guard::Unguarded && !self.rules.keep(Rule::UnguardedReports) {
            finish(state, i, if success { Answer::Own } else { Answer::Failed });
        }
    }

    /// An answer without a run.
    pub(super) fn refuse(&self, state: &mut State, i: Id, answer: Answer) {
        finish(state, i, answer);
        if self.rules.keep(Rule::RefusalReleases) && state[i].late.is_none() {
            // Sent behind the claim on the same connection; nobody waits for it.
            self.on_release(state, i);
        }
    }

    /// The store cannot be asked for the key.
    pub(super) fn give_up_claim(&self, state: &mut State, i: Id) {
        if self.rules.outage == Outage::Closed {
            return self.refuse(state, i, Answer::Unavailable);
        }
        if state[i].has(Mark::SawBusy) && self.rules.keep(Rule::SeenStaysGuarded) {
            return self.refuse(state, i, Answer::Busy);
        }
        let known = self
            .busy_in_replica(state, i)
            .filter(|_| self.rules.keep(Rule::OncePerProcess));
        match known {
            None => self.begin(state, i, Guard::Unguarded),
            Some(j) if !self.cast.same_request(i, j) => self.refuse(state, i, Answer::Mismatch),
            Some(j) => match state[j].answer {
                Answer::Own => self.refuse(state, i, Answer::Replay(j)),
                Answer::Replay(by) => self.refuse(state, i, Answer::Replay(by)),
                // Not answered yet: what it will answer is not known before its report is.
                Answer::None
                | Answer::Failed
                | Answer::Busy
                | Answer::Unknown
                | Answer::Mismatch
                | Answer::Unavailable => wait(state, i),
            },
        }
    }
}

fn wait(state: &mut State, i: Id) {
    let request = &mut state[i];
    request.phase = Phase::Waiting;
    request.marks.set(Mark::SawBusy, true);
    request.marks.set(Mark::Retried, false);
}

/// The request is over; a client that was told something keeps what it was told.
pub(super) fn finish(state: &mut State, i: Id, answer: Answer) {
    let request = &mut state[i];
    if request.answer == Answer::None {
        request.answer = answer;
    }
    request.phase = Phase::Finished;
    if !request.has(Mark::Effect) {
        request.marks.set(Mark::Remembered, false);
    }
    request.forget_tries();
}

/// As far as `i` knows, its command was not carried out. A run that has ended is answered at once.
pub(super) fn failed(state: &mut State, i: Id) {
    let request = &mut state[i];
    let (phase, answer) = match request.phase {
        Phase::Claiming => (Phase::ClaimFailed, Answer::None),
        Phase::Completing => (Phase::CompleteFailed, Answer::Own),
        Phase::Releasing => (Phase::ReleaseFailed, Answer::Failed),
        Phase::Idle
        | Phase::ClaimFailed
        | Phase::Waiting
        | Phase::Running
        | Phase::CompleteFailed
        | Phase::ReleaseFailed
        | Phase::Finished
        | Phase::Dead => return,
    };
    request.phase = phase;
    if request.answer == Answer::None {
        request.answer = answer;
    }
}
