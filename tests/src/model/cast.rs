//! Who asks, from where.

use std::fmt;
use std::ops::Index;

/// At most this many requests.
pub const MOST: usize = 4;

/// The number of a request, which is its token too: what is known of a request follows from its token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u8);

impl Id {
    /// Every number there can be.
    const ALL: [Self; MOST] = [Self(0), Self(1), Self(2), Self(3)];

    /// The place of this request in a list of all.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'A' + self.0))
    }
}

/// One request, as its client sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    /// Whose body it has: `0` the original's, others differ.
    pub body: u8,
    /// The replica that serves it.
    pub replica: u8,
}

/// All requests for the key, at most [`MOST`].
#[derive(Clone, Copy, Debug)]
pub struct Cast(pub &'static [Sender]);

/// The original's body, and another's, at replica 0 and at replica 1.
const HERE: Sender = Sender {
    body: 0,
    replica: 0,
};
const THERE: Sender = Sender {
    body: 0,
    replica: 1,
};
const OTHER_HERE: Sender = Sender {
    body: 1,
    replica: 0,
};
const OTHER_THERE: Sender = Sender {
    body: 1,
    replica: 1,
};

impl Cast {
    /// The original, a duplicate on another replica, a duplicate beside the original.
    pub const SAME: Self = Self(&[HERE, THERE, HERE]);
    /// The original, a duplicate on another replica, and another body beside that duplicate.
    pub const MIXED: Self = Self(&[HERE, THERE, OTHER_THERE]);
    /// The original, a duplicate on another replica, and another body beside the original.
    pub const MIXED_HERE: Self = Self(&[HERE, THERE, OTHER_HERE]);
    /// The original and another body, on one replica.
    pub const TWO_BODIES: Self = Self(&[HERE, OTHER_HERE]);
    /// The original, a duplicate and another body in one process.
    pub const PROCESS: Self = Self(&[HERE, HERE, OTHER_HERE]);
    /// The original, two duplicates and another body in one process.
    pub const PROCESS_OF_FOUR: Self = Self(&[HERE, HERE, HERE, OTHER_HERE]);
    /// Four of the same, on two replicas.
    pub const FOUR_SAME: Self = Self(&[HERE, THERE, HERE, THERE]);
    /// Three of the same and another body, on two replicas.
    pub const FOUR_MIXED: Self = Self(&[HERE, THERE, HERE, OTHER_THERE]);
    /// Two of the same and two of another body, on two replicas.
    pub const FOUR_PAIRS: Self = Self(&[HERE, THERE, OTHER_HERE, OTHER_THERE]);
    /// The two casts of three that the general promises are checked with.
    pub const BOTH: [Self; 2] = [Self::SAME, Self::MIXED];

    /// Every request.
    pub fn everyone(self) -> impl Iterator<Item = Id> {
        Id::ALL.into_iter().take(self.0.len())
    }

    /// Every request but `i`.
    pub fn others(self, i: Id) -> impl Iterator<Item = Id> {
        self.everyone().filter(move |&j| j != i)
    }

    /// Whether two requests have the same body, and so the same fingerprint.
    #[must_use]
    pub fn same_request(self, a: Id, b: Id) -> bool {
        self[a].body == self[b].body
    }

    /// Whether two requests are served by the same replica.
    #[must_use]
    pub fn same_replica(self, a: Id, b: Id) -> bool {
        self[a].replica == self[b].replica
    }
}

impl Index<Id> for Cast {
    type Output = Sender;

    #[expect(
        clippy::indexing_slicing,
        reason = "ids come from `everyone`, which ends with the cast"
    )]
    fn index(&self, id: Id) -> &Sender {
        &self.0[id.place()]
    }
}
