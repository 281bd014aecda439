//! Every step that a request, the network or a fault can take, and where it leads.

use super::action::{Action, Link};
use super::cast::Id;
use super::disaster::{fail_over, lose_all};
use super::engine::{failed, finish};
use super::explore::Machine;
use super::protocol::Protocol;
use super::request::{Answer, Command, Guard, Mark, Phase};
use super::rules::Rule;
use super::state::State;

impl Machine for Protocol {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        State::start(self.faults)
    }

    fn actions(&self, state: &State, into: &mut Vec<Action>) {
        for i in self.cast.everyone() {
            self.offer_request(state, i, into);
        }
        self.offer_faults(state, into);
    }

    fn step(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        let s = &mut next;
        match action {
            Action::Send(i) => s[i].phase = Phase::Claiming,
            Action::Store(i, command, link) => self.send(s, i, command, link),
            Action::Renew(i, link) => self.send(s, i, Command::Renew, link),
            Action::Late(i, command) => self.arrive_late(s, i, command),
            Action::Retry(i) => retry(s, i),
            Action::GiveUp(i) if s[i].phase == Phase::ClaimFailed => self.give_up_claim(s, i),
            Action::GiveUp(i) => finish(s, i, Answer::None),
            Action::ReleaseInstead(i) => s[i].phase = Phase::Releasing,
            Action::Succeed(i) => self.after_run(s, i, true),
            Action::Fail(i) => self.after_run(s, i, false),
            Action::Wake(i) if self.rules.keep(Rule::ClaimAgain) => s[i].phase = Phase::Claiming,
            Action::Wake(i) => self.begin(s, i, Guard::Claimed),
            Action::TimeOut(i) => self.refuse(s, i, Answer::Busy),
            Action::Crash(replica) => self.crash(s, replica),
            Action::Pause => self.pause(s),
            Action::Tick => self.tick(s),
            Action::LoseAll => lose_all(s),
            Action::Failover => fail_over(s),
            Action::Expire => self.expire(s),
        }
        next
    }
}

impl Protocol {
    fn send(&self, state: &mut State, i: Id, command: Command, link: Link) {
        match link {
            Link::Fine => return self.carry_out(state, i, command, true),
            Link::ReplyLost => {
                state.faults.reply_lost -= 1;
                self.carry_out(state, i, command, false);
            }
            Link::Unreachable => state.faults.unreachable -= 1,
            Link::Late => {
                state.faults.late -= 1;
                state[i].late = Some(command);
            }
        }
        failed(state, i);
    }

    fn arrive_late(&self, state: &mut State, i: Id, command: Command) {
        state[i].late = None;
        self.carry_out(state, i, command, false);
        if self.rules.keep(Rule::RefusalReleases) && state[i].over_without_run() {
            // The release sent behind it.
            self.on_release(state, i);
        }
    }
}

fn retry(state: &mut State, i: Id) {
    let request = &mut state[i];
    request.phase = match request.phase {
        Phase::ClaimFailed => {
            request.marks.set(Mark::Retried, true);
            Phase::Claiming
        }
        Phase::CompleteFailed => Phase::Completing,
        Phase::Idle
        | Phase::Claiming
        | Phase::Waiting
        | Phase::Running
        | Phase::Completing
        | Phase::Releasing
        | Phase::ReleaseFailed
        | Phase::Finished
        | Phase::Dead => Phase::Releasing,
    };
}
