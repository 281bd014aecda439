//! Where claims and records stand: one trait, one atomic step a method.
//!
//! ```text
//!               claim                    complete
//!    nothing ──────────► in progress ──────────────► completed ──► nothing
//!       ▲                 │   ▲  │                    (its retention is over)
//!       └─────────────────┘   └──┘
//!       release, lease over   renew
//! ```
//!
//! At each key stands nothing, a claim ([in progress](ClaimOutcome::InProgress)) or a
//! [record](ClaimOutcome::Completed). The five rules that a store can keep or break:
//!
//! 1. **Claim** takes an empty key. A claim that finds its own token has acquired: an earlier
//!    reply was lost.
//! 2. **Complete**: the first success wins. It stores over its own claim, over nothing and over
//!    anybody's claim; never over a record, which it returns instead. One that finds its own
//!    record is done, so a record remembers its token.
//! 3. **Renew** prolongs its own claim and puts it back where nothing stands; never over another's
//!    claim or a record.
//! 4. **Release** frees its own claim, and only that. It returns a record that stands.
//! 5. What is expired is absent, whether or not it has been purged; but a claim that asks to be
//!    [kept](Claim::kept) stands on as [lapsed](ClaimOutcome::Lapsed) after its lease, and is no
//!    other's to take.
//!
//! Rule 2 is why a completion compares no token with the claim: the handler has taken effect, and
//! whoever holds the claim by now must learn of it rather than run on unseen.
//!
//! # Your cache and your lock
//!
//! A service that has a cache already makes it a store with two methods: see [`Cache`] and
//! [`LockedStore`], which looks, locks, looks again, and gives the [lock](crate::lock) up once the
//! record is set. It is the weakest level: one run as long as the lock holds.
//!
//! # Writing a store
//!
//! Say which [`Level`] it has, answer the four commands, and run `testing::contract` (feature
//! `testing`) on it: it checks every rule, and a store is what passes it.
//!
//! * Each command is one conditional write, never a read and then a write: fifty claims at once
//!   have one winner.
//! * A command never waits for another request. The engine does the waiting; a store that can tell
//!   when a claim has gone helps it with [`watch`](Store::watch).
//! * A command may be dropped at any point, since a client hangs up or `store_timeout` passes. It
//!   may then have been carried out or not, but it leaves no lock behind.
//! * The store's own clock decides when a lease or a retention is over, not the callers'.
//! * What comes back is what was stored, byte for byte: status, headers in their order with
//!   repeated ones and values that are not UTF-8, the body or the note that there is none, and the
//!   fingerprint with its scheme. What cannot be read is an
//!   [unreadable](StoreErrorKind::Unreadable) error, never an empty key.
//! * Retentions are of any length: hardly any, when a report comes late, or a week.
//!
//! A store that has its answers at once returns [`Step::Now`]; others [`Step::later`]:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use idempotent_runtime::{MemoryStore, StorageKey, store::*};
//!
//! /// Counts the claims of the store within.
//! struct Counting<S> {
//!     store: S,
//!     claims: std::sync::atomic::AtomicUsize,
//! }
//!
//! impl<S: Store> Store for Counting<S> {
//!     fn level(&self) -> Level {
//!         self.store.level()
//!     }
//!
//!     fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
//!         self.claims.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
//!         self.store.claim(key, claim)
//!     }
//!
//!     fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
//!         self.store.renew(key, claim)
//!     }
//!
//!     fn complete(
//!         &self,
//!         key: &StorageKey,
//!         token: Token,
//!         record: Arc<Record>,
//!         retention: Duration,
//!     ) -> Step<Result<CompleteOutcome, StoreError>> {
//!         self.store.complete(key, token, record, retention)
//!     }
//!
//!     fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
//!         self.store.release(key, token)
//!     }
//!
//!     fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
//!         self.store.watch(key)
//!     }
//! }
//! # drop(Counting { store: MemoryStore::new(), claims: 0.into() });
//! ```

mod locked;

#[cfg(feature = "redis")]
mod redis;

mod memory;

mod value;

mod hex;

use std::{sync::Arc, time::Duration};

#[cfg(feature = "redis")]
pub use self::{locked::RedisCache, redis::RedisStore};
pub use self::{
    locked::{Cache, LockedStore},
    memory::{MemoryStore, WhenFull},
};
pub use crate::{
    error::{StoreError, StoreErrorKind},
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, RecordBody, Token},
    step::{BoxFuture, Step},
};

/// Who asks for the right to run, for which request, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// The same for all commands of one request.
    pub token: Token,
    /// Kept with the claim, so that another request is refused while this one runs.
    pub fingerprint: Fingerprint,
    /// How long the claim stands without being renewed. An embedded store ignores it.
    pub lease: Duration,
    /// How long it is kept once its lease is over, as [lapsed](ClaimOutcome::Lapsed): for handlers
    /// that must not run again when nobody knows how their run ended. Zero: it is gone with its
    /// lease. Only a [leased](Level::Leased) store heeds it.
    pub kept: Duration,
}

impl Claim {
    /// A claim of these parts, gone with its lease.
    #[must_use]
    pub const fn new(token: Token, fingerprint: Fingerprint, lease: Duration) -> Self {
        Self {
            token,
            fingerprint,
            lease,
            kept: Duration::ZERO,
        }
    }

    /// The claim, [kept](Self::kept) this long after its lease.
    #[must_use]
    pub const fn kept(mut self, kept: Duration) -> Self {
        self.kept = kept;
        self
    }
}

/// What a claim found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// Nothing, or a claim with the same token: the request may run.
    Claimed,
    /// A record.
    Completed(Arc<Record>),
    /// Another request's claim.
    InProgress {
        /// The request that runs.
        fingerprint: Fingerprint,
        /// How long its claim stands if nobody renews it; `None` in an embedded store.
        lease_left: Option<Duration>,
    },
    /// Another request's claim whose lease is over, [kept](Claim::kept) because nobody knows how its
    /// run ended. Its holder can still renew, complete or release it.
    Lapsed {
        /// The request that ran.
        fingerprint: Fingerprint,
    },
}

/// What a renewal found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewOutcome {
    /// Its own claim, which now stands for another lease.
    Renewed,
    /// Nothing. The claim stands again.
    Restored,
    /// Another request's claim, unchanged.
    Lost,
    /// A record, unchanged.
    Completed(Arc<Record>),
}

/// What a completion found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompleteOutcome {
    /// Its own claim, nothing, or its own record. The record stands.
    Stored,
    /// Another request's claim. The record stands in its place.
    Displaced,
    /// Another request's record, unchanged.
    Completed(Arc<Record>),
}

/// What a release found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// Its own claim. Nothing stands now.
    Released,
    /// Nothing, or another request's claim, unchanged.
    NotHeld,
    /// A record, unchanged.
    Completed(Arc<Record>),
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn level(&self) -> Level {
        (**self).level()
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        (**self).claim(key, claim)
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        (**self).renew(key, claim)
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        (**self).complete(key, token, record, retention)
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        (**self).release(key, token)
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        (**self).watch(key)
    }

    fn probe(&self) -> Step<Result<(), StoreError>> {
        (**self).probe()
    }

    fn never_fails(&self) -> bool {
        (**self).never_fails()
    }
}

/// How strong a store's claims are, which is what `testing::contract` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// In the memory of this process: a claim lives with its run and needs no lease.
    Embedded,
    /// Shared: a claim has a lease, every write compares tokens.
    Leased,
    /// A cache and a lock: mutual exclusion as long as the lock holds, not fenced. It need not know
    /// the request of a claim, find a claim of its own again, put one back, or tell whom a
    /// completion has displaced; and one lock may be that of several keys, which then wait for
    /// each other.
    Locked,
}

/// Claims and records by key. See the [module's rules](self).
///
/// An error says nothing about whether the command took effect. The engine sends the commands of
/// one request in order and never two at a time; a command that it has given up must not be carried
/// out after a later one of the same token.
pub trait Store: Send + Sync + 'static {
    /// How strong this store's claims are, which decides which part of the contract applies.
    fn level(&self) -> Level;

    /// Absent, or in progress by this token → in progress by this token. The engine runs the
    /// handler only on [`ClaimOutcome::Claimed`].
    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>>;

    /// In progress by this token, or absent → in progress for another lease. Sent at a third of
    /// the lease while the handler runs.
    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>>;

    /// Absent, or in progress by anybody → completed, kept for `retention`. Sent once the handler
    /// has taken effect. May be repeated with the same token.
    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>>;

    /// In progress by this token → absent. Sent when the handler took no effect.
    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>>;

    /// A future that ends when the claim at `key` has gone, for a store that can tell; `None` from
    /// one that cannot, whose waiters poll.
    ///
    /// It notices every change since this method returned, polled or not, and ends at once where no
    /// claim stands: a waiter that has met a claim does not look at it again before it waits. It
    /// ends for all who watch one claim. It is only a hint: a waiter claims again before it runs,
    /// and polls besides, so it may end early.
    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        let _ = key;
        None
    }

    /// Whether the store can be used again, asked from time to time after a command has failed as
    /// [unavailable](StoreErrorKind::Unavailable) and before the next one is sent. A store behind a
    /// connection opens a fresh one for it, and keeps that in place of the old one: a connection on
    /// which nothing arrives any more does not say so.
    ///
    /// As provided it always agrees, so that the next command finds out.
    fn probe(&self) -> Step<Result<(), StoreError>> {
        Step::Now(Ok(()))
    }

    /// Whether no command ever fails as [unavailable](StoreErrorKind::Unavailable), as in a table in
    /// this process. Nothing is kept then for the time in which a store cannot be reached.
    fn never_fails(&self) -> bool {
        false
    }
}
