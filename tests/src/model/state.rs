//! One situation: what stands at the key, how far each request is, and what was broken on the way.

use std::ops::{Index, IndexMut};

use super::cast::{Id, MOST};
use super::faults::Faults;
use super::flags::{Flag, Flags};
use super::request::{Mark, Request};

/// A lease, in ticks.
pub const LEASE: u8 = 2;

/// What stands at the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Slot {
    /// Nothing.
    #[default]
    Vacant,
    /// A claim.
    Claim {
        /// Whose token it carries.
        by: Id,
        /// Ticks of its lease; 0 only for a lapsed claim that stays.
        left: u8,
    },
    /// A finished record.
    Record {
        /// Whose response it holds.
        by: Id,
    },
}

impl Slot {
    /// Whose claim or record stands.
    #[must_use]
    pub const fn owner(self) -> Option<Id> {
        match self {
            Self::Vacant => None,
            Self::Claim { by, .. } | Self::Record { by } => Some(by),
        }
    }

    /// Whose claim stands.
    #[must_use]
    pub const fn claimant(self) -> Option<Id> {
        match self {
            Self::Claim { by, .. } => Some(by),
            Self::Vacant | Self::Record { .. } => None,
        }
    }
}

/// A broken promise, noted at the step that breaks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breach {
    /// Began to run while a claim or record of another body stood.
    RanOverOtherBody,
    /// Changed what another had put there (other than a claim into a record, by complete).
    TouchedAnothers,
    /// Complete turned another's claim into its own record.
    Converted,
    /// Began to run although another's run or success stood, and no cause explains it.
    Unexplained,
    /// Began to run although the store had been told of a success of the same request.
    RanAfterTold,
    /// Began to run although a living run had renewed after the loss.
    RanAfterRenewal,
    /// Ran unguarded although it had seen another's claim.
    RanAfterBusy,
    /// Ran unguarded although its own replica was running it or remembered its success.
    RanTwiceInReplica,
    /// Began to run although a finished success had never been reported to the store.
    RanAfterUnreported,
    /// A client got the handler's failure while a success of the same request stood in the store.
    FailedBesideSuccess,
    /// A complete stored a record again whose retention was over.
    Resurrected,
}

impl Flag for Breach {
    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// One situation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// What stands at the key.
    pub slot: Slot,
    /// What stood there before the last write, which a stale follower still has.
    pub older: Slot,
    requests: [Request; MOST],
    /// The faults that may still happen.
    pub faults: Faults,
    /// What was broken on the way here.
    pub breaches: Flags<Breach>,
    /// Ticks that a claim has outlived its holder.
    pub orphan_ticks: u8,
}

impl State {
    /// Nothing stands, nobody has asked, and `faults` may happen.
    #[must_use]
    pub fn start(faults: Faults) -> Self {
        Self {
            faults,
            ..Self::default()
        }
    }

    /// Notes `breach` where it happened.
    pub fn note(&mut self, breach: Breach, happened: bool) {
        self.breaches.note(breach, happened);
    }

    /// The store that takes over was told nothing of what the one before was told.
    pub fn forget_reports(&mut self) {
        for request in &mut self.requests {
            request.marks.set(Mark::Told, false);
        }
    }
}

impl Index<Id> for State {
    type Output = Request;

    #[expect(
        clippy::indexing_slicing,
        reason = "every id is below `MOST`, the length"
    )]
    fn index(&self, id: Id) -> &Request {
        &self.requests[id.place()]
    }
}

impl IndexMut<Id> for State {
    #[expect(
        clippy::indexing_slicing,
        reason = "every id is below `MOST`, the length"
    )]
    fn index_mut(&mut self, id: Id) -> &mut Request {
        &mut self.requests[id.place()]
    }
}
