//! One request: how far it is, what its client was told, and what is known of it.

use super::cast::Id;
use super::flags::{Flag, Flags};

/// What a request can tell a store to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Take the key.
    Claim,
    /// Keep it.
    Renew,
    /// Store the response.
    Complete,
    /// Give the key up.
    Release,
}

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Phase {
    /// Not sent yet.
    #[default]
    Idle,
    /// Its claim is under way.
    Claiming,
    /// Its claim failed, as far as it knows.
    ClaimFailed,
    /// Another's claim stands; it waits.
    Waiting,
    /// Its handler runs.
    Running,
    /// Its handler succeeded; complete is under way.
    Completing,
    /// Complete failed; the client has its answer.
    CompleteFailed,
    /// Its handler failed; release is under way.
    Releasing,
    /// Release failed; the client has its answer.
    ReleaseFailed,
    /// Over.
    Finished,
    /// Its replica crashed; the client never hears of it.
    Dead,
}

/// What a client was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Answer {
    /// Nothing yet.
    #[default]
    None,
    /// The response of its own successful run.
    Own,
    /// The response of that request's run.
    Replay(Id),
    /// The handler's own failure.
    Failed,
    /// 409, still in flight.
    Busy,
    /// 409, outcome unknown.
    Unknown,
    /// 422.
    Mismatch,
    /// 503.
    Unavailable,
}

/// Why a second run could begin. History for the properties; the protocol never reads it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Cause {
    /// Nothing explains it.
    #[default]
    None,
    /// The holder's replica died.
    Crash,
    /// The living holder lost its lease.
    Pause,
    /// The holder gave up on complete and its claim ran out.
    Undelivered,
    /// The store lost data.
    Loss,
    /// The retention was over.
    Retention,
    /// One of the two ran unguarded.
    FailOpen,
}

/// What protects a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Guard {
    /// It does not run.
    #[default]
    None,
    /// A claim, or a record by now.
    Claimed,
    /// Nothing: the store could not be asked.
    Unguarded,
}

/// What is known of a request besides its phase. From `Reported` on it is history, which the protocol never reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Its failed claim was tried again; once is the most.
    Retried,
    /// It has seen another's claim.
    SawBusy,
    /// It has learnt from renew that its claim is gone.
    Lapsed,
    /// Its replica has not restarted since it began to run.
    Remembered,
    /// The handler succeeded: the effect exists.
    Effect,
    /// Its complete was carried out by the store.
    Reported,
    /// Its complete was carried out by the store, which kept nothing.
    Told,
    /// Its renew was carried out where nothing stood, and nothing stood afterwards.
    RenewedInVain,
}

impl Flag for Mark {
    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Request {
    /// How far it is.
    pub phase: Phase,
    /// What its client was told.
    pub answer: Answer,
    /// What protects its run.
    pub guard: Guard,
    /// What else is known of it.
    pub marks: Flags<Mark>,
    /// A command given up by its sender, still under way.
    pub late: Option<Command>,
    /// History: what removed its claim or record from the store.
    pub gone: Cause,
    /// History: why it could run although another had run or was running.
    pub why: Cause,
}

impl Request {
    /// Whether it has this mark.
    #[must_use]
    pub fn has(&self, mark: Mark) -> bool {
        self.marks.has(mark)
    }

    /// Whether it is under way, so that it answers for its claim.
    #[must_use]
    pub const fn alive(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Finished | Phase::Dead)
    }

    /// Whether it was answered without a run.
    #[must_use]
    pub fn over_without_run(&self) -> bool {
        self.phase == Phase::Finished && self.guard == Guard::None
    }

    /// Drops what mattered only while it was under way, so that alike ends are one state.
    pub fn forget_tries(&mut self) {
        for mark in [Mark::Retried, Mark::SawBusy, Mark::Lapsed] {
            self.marks.set(mark, false);
        }
    }
}
