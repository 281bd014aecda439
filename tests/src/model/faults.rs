//! How often each fault may still happen.

/// A budget of faults. A walk tries every moment for each of them, and also that it never happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Faults {
    /// A command is carried out, its reply is lost.
    pub reply_lost: u8,
    /// A command never reaches the store, and the sender knows only that it failed.
    pub unreachable: u8,
    /// The sender gives a command up; the store carries it out at any later time.
    pub late: u8,
    /// A replica dies with all its requests.
    pub crash: u8,
    /// A living holder is paused, or cut off, beyond its lease.
    pub pause: u8,
    /// The store restarts empty.
    pub loss: u8,
    /// A follower without the last write takes over.
    pub failover: u8,
    /// A finished record's retention is over (where lapsed claims stay: also theirs).
    pub retention: u8,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        reply_lost: 0,
        unreachable: 0,
        late: 0,
        crash: 0,
        pause: 0,
        loss: 0,
        failover: 0,
        retention: 0,
    };
    /// Two replies are lost.
    pub const REPLY_LOST: Self = Self {
        reply_lost: 2,
        ..Self::NONE
    };
    /// Two commands never arrive.
    pub const UNREACHABLE: Self = Self {
        unreachable: 2,
        ..Self::NONE
    };
    /// Two commands are carried out late.
    pub const LATE: Self = Self {
        late: 2,
        ..Self::NONE
    };
    /// One replica dies.
    pub const CRASH: Self = Self {
        crash: 1,
        ..Self::NONE
    };
    /// One living holder loses its lease.
    pub const PAUSE: Self = Self {
        pause: 1,
        ..Self::NONE
    };
    /// The store restarts empty once.
    pub const LOSS: Self = Self {
        loss: 1,
        ..Self::NONE
    };
    /// A stale follower takes over once.
    pub const FAILOVER: Self = Self {
        failover: 1,
        ..Self::NONE
    };
    /// One retention ends.
    pub const RETENTION: Self = Self {
        retention: 1,
        ..Self::NONE
    };
    /// A lost lease and a death.
    pub const PAUSE_CRASH: Self = Self {
        pause: 1,
        ..Self::CRASH
    };
    /// A lost lease and a command that never arrives.
    pub const PAUSE_UNREACHABLE: Self = Self {
        unreachable: 1,
        ..Self::PAUSE
    };
    /// An empty restart and a lost lease.
    pub const LOSS_PAUSE: Self = Self {
        loss: 1,
        ..Self::PAUSE
    };
    /// A command carried out late and a death.
    pub const LATE_CRASH: Self = Self {
        late: 1,
        ..Self::CRASH
    };

    /// What the network alone can do.
    pub const NETWORK: [Self; 3] = [Self::REPLY_LOST, Self::UNREACHABLE, Self::LATE];
    /// Every budget that the general promises are checked under.
    pub const MATRIX: [Self; 13] = [
        Self::NONE,
        Self::CRASH,
        Self::PAUSE,
        Self::LOSS,
        Self::FAILOVER,
        Self::RETENTION,
        Self::REPLY_LOST,
        Self::UNREACHABLE,
        Self::LATE,
        Self::PAUSE_CRASH,
        Self::PAUSE_UNREACHABLE,
        Self::LOSS_PAUSE,
        Self::LATE_CRASH,
    ];
}
