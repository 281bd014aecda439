//! One step of a request, of the network or of a fault.

use super::cast::Id;
use super::request::Command;

/// How a command fares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link {
    /// It is carried out and its sender hears so.
    Fine,
    /// It is carried out; its sender hears an error.
    ReplyLost,
    /// It is not carried out; its sender hears an error.
    Unreachable,
    /// Its sender hears an error, and it may be carried out at any later time.
    Late,
}

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The client sends the request.
    Send(Id),
    /// The pending claim, complete or release of the request.
    Store(Id, Command, Link),
    /// The running request renews.
    Renew(Id, Link),
    /// A command that its sender had given up is carried out.
    Late(Id, Command),
    /// The request sends its failed command again.
    Retry(Id),
    /// The request stops trying the store.
    GiveUp(Id),
    /// A mistaken engine frees the key after a success it could not store.
    ReleaseInstead(Id),
    /// The handler succeeds.
    Succeed(Id),
    /// The handler fails.
    Fail(Id),
    /// A waiter is woken.
    Wake(Id),
    /// A waiter's time is over.
    TimeOut(Id),
    /// A replica dies.
    Crash(u8),
    /// The living holder is paused or cut off beyond its lease.
    Pause,
    /// Time passes for a claim that nobody renews.
    Tick,
    /// The store restarts empty.
    LoseAll,
    /// A stale follower takes over.
    Failover,
    /// A record's retention, or that of a lapsed claim that stayed, is over.
    Expire,
}
