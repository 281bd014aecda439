//! Which steps can be taken in a situation.

use super::action::{Action, Link};
use super::cast::Id;
use super::protocol::{Protocol, pending};
use super::request::{Answer, Guard, Mark, Phase};
use super::rules::{Mistake, Outage, Rule};
use super::state::{LEASE, Slot, State};

impl Protocol {
    /// The steps of request `i`.
    pub(super) fn offer_request(&self, state: &State, i: Id, into: &mut Vec<Action>) {
        let request = &state[i];
        if let Some(command) = pending(request.phase) {
            let passes = request.late.is_none() || !self.rules.keep(Rule::InOrder);
            let faults = state.faults;
            let links = [
                (Link::Fine, passes),
                (Link::ReplyLost, passes && faults.reply_lost > 0),
                (Link::Unreachable, faults.unreachable > 0),
                (Link::Late, faults.late > 0 && request.late.is_none()),
            ];
            let open = links.into_iter().filter(|(_, open)| *open);
            into.extend(open.map(|(link, _)| Action::Store(i, command, link)));
        }
        into.extend(request.late.map(|command| Action::Late(i, command)));
        match request.phase {
            Phase::Idle => into.push(Action::Send(i)),
            Phase::ClaimFailed => {
                if !request.has(Mark::Retried) {
                    into.push(Action::Retry(i));
                }
                into.push(Action::GiveUp(i));
            }
            Phase::Waiting => self.offer_waiter(state, i, into),
            Phase::Running => self.offer_run(state, i, into),
            Phase::CompleteFailed | Phase::ReleaseFailed => {
                into.push(Action::Retry(i));
                if !self.rules.keep(Rule::ReportKept) {
                    into.push(Action::GiveUp(i));
                }
                let mistaken = !self.rules.keep(Rule::ReportOnce);
                if mistaken && request.phase == Phase::CompleteFailed {
                    into.push(Action::ReleaseInstead(i));
                }
            }
            Phase::Claiming
            | Phase::Completing
            | Phase::Releasing
            | Phase::Finished
            | Phase::Dead => {}
        }
    }

    fn offer_waiter(&self, state: &State, i: Id, into: &mut Vec<Action>) {
        let claim_stands = matches!(state.slot, Slot::Claim { by, left } if by != i && left > 0);
        let asks_replica =
            self.rules.outage == Outage::Open && self.rules.keep(Rule::OncePerProcess);
        let run_stands = asks_replica
            && self
                .busy_in_replica(state, i)
                .is_some_and(|j| state[j].answer == Answer::None);
        if !claim_stands && !run_stands {
            into.push(Action::Wake(i));
        }
        if !self.rules.make(Mistake::WaitForEver) {
            into.push(Action::TimeOut(i));
        }
    }

    fn offer_run(&self, state: &State, i: Id, into: &mut Vec<Action>) {
        let request = &state[i];
        into.push(Action::Succeed(i));
        into.push(Action::Fail(i));
        if request.guard != Guard::Claimed && !self.rules.keep(Rule::RenewRestores) {
            return;
        }
        let fresh = state.slot == Slot::Claim { by: i, left: LEASE };
        if !fresh && !request.has(Mark::Lapsed) {
            into.push(Action::Renew(i, Link::Fine));
        }
        if state.faults.late > 0 && request.late.is_none() {
            into.push(Action::Renew(i, Link::Late));
        }
    }

    /// What can happen to the replicas and to the store.
    pub(super) fn offer_faults(&self, state: &State, into: &mut Vec<Action>) {
        let faults = state.faults;
        if faults.crash > 0 {
            let hit = |replica: &u8| {
                let mut there =
                    (self.cast.everyone()).filter(|&i| self.cast[i].replica == *replica);
                self.rules.embedded && *replica == 0 || there.any(|i| state[i].alive())
            };
            into.extend([0, 1].into_iter().filter(hit).map(Action::Crash));
        }
        if let Slot::Claim { by, left: 1.. } = state.slot
            && !self.rules.embedded
        {
            if !state[by].alive() {
                into.push(Action::Tick);
            } else if faults.pause > 0 {
                into.push(Action::Pause);
            }
        }
        if state.slot != Slot::Vacant && faults.loss > 0 {
            into.push(Action::LoseAll);
        }
        if state.slot != state.older && faults.failover > 0 {
            into.push(Action::Failover);
        }
        let expires = matches!(
            state.slot,
            Slot::Record { .. } | Slot::Claim { left: 0, .. }
        );
        if expires && faults.retention > 0 {
            into.push(Action::Expire);
        }
    }
}
