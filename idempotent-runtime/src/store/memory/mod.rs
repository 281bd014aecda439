//! The embedded store: claims and records in the memory of this process.

mod sweep;

mod room;

mod table;

mod stripe;

mod order;

mod cost;

use std::{
    fmt,
    future::ready,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use self::{
    stripe::Stored,
    table::{Table, nanos},
};
use super::{
    BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step,
    Store, StoreError,
};
use crate::{
    key::StorageKey,
    record::{Record, Token},
};

/// How many expired records a completion removes, so that none pays for many.
const PURGED_BY_A_COMPLETION: usize = 2;
/// The end of a retention without end; `u64::MAX` stands for no record.
const LATEST: u64 = u64::MAX - 1;
const FULL: &str =
    "the embedded store is full: raise `max_bytes`, shorten the retention, or let it evict";
const DEFAULT_MAX_BYTES: usize = 256 * 1024 * 1024;

/// Records in the memory of this process, bounded by the bytes that they really take.
///
/// The handle is cheap to clone; all clones are one store. A claim lives with its run and needs no
/// lease, and it is never forgotten, however full the store is. Records are gone with the process.
///
/// What has expired is removed by completions, and by a task on the runtime of the last one while
/// there are records; whether or not it has been removed, it is never answered from.
///
/// ```
/// use idempotent_runtime::{MemoryStore, store::WhenFull};
///
/// let store = MemoryStore::new()
///     .max_bytes(64 * 1024 * 1024)
///     .when_full(WhenFull::Refuse);
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    table: Arc<Table>,
}

/// What a [`MemoryStore`] does when it has reached its bound.
///
/// A request that has been claimed is always completed: it has taken effect, and a retry must not
/// run it again. So either old records make room, or new requests stay out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// The oldest records are dropped before their retention is over. A retry that comes later
    /// still runs again: `idempotency.evicted` counts the records, and the gauge
    /// `idempotency.effective_retention` says how old they were.
    ///
    /// A record that alone takes more than half of the bound is kept without its response.
    #[default]
    Evict,
    /// New claims fail as [full](super::StoreErrorKind::Full) until records have expired: such
    /// requests are refused with 503, whatever `on_store_failure` says. What is claimed already is
    /// completed beyond the bound: up to an eighth over it in full, then without its response, so
    /// that a retry is refused and not run.
    Refuse,
}

impl MemoryStore {
    /// A store of at most 256 MiB that [evicts](WhenFull::Evict).
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Arc::new(Table::new(DEFAULT_MAX_BYTES)),
        }
    }

    /// The most bytes that claims and records take, tables and allocator included. Default 256 MiB.
    /// An empty store takes about 64 KiB besides. Holds for all clones.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.table.max_bytes.store(bytes, Ordering::Relaxed);
        self
    }

    /// What happens at the bound. Default [`WhenFull::Evict`]. Holds for all clones.
    #[must_use]
    pub fn when_full(self, when_full: WhenFull) -> Self {
        let refuses = when_full == WhenFull::Refuse;
        self.table.refuses.store(refuses, Ordering::Relaxed);
        self
    }

    /// How many claims and records it holds. A record that has expired counts until it is removed.
    #[must_use]
    pub fn len(&self) -> usize {
        let counts = self.table.stripes().map(|stripe| stripe.len());
        counts.map(|(claims, records)| claims + records).sum()
    }

    /// Whether it holds neither claims nor records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many claims it holds: requests that run.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.table.stripes().map(|stripe| stripe.len().0).sum()
    }

    /// The bytes that claims and records take, as [`max_bytes`](Self::max_bytes) counts them.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.table.bytes()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("max_bytes", &self.table.max_bytes)
            .field("stored_bytes", &self.stored_bytes())
            .finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn level(&self) -> Level {
        Level::Embedded
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        let table = &*self.table;
        let mut stripe = table.stripe(key);
        if let Some(stored) = stripe.record(key, || table.now()) {
            return Step::Now(Ok(ClaimOutcome::Completed(Arc::clone(&stored.record))));
        }
        if let Some(claimed) = stripe.claim(key) {
            return Step::Now(Ok(if claimed.token == claim.token {
                ClaimOutcome::Claimed
            } else {
                ClaimOutcome::InProgress {
                    fingerprint: claimed.fingerprint,
                    lease_left: None,
                }
            }));
        }
        if table.refuses_claims() {
            table.settle(key, &mut stripe);
            drop(stripe);
            if table.drop_expired() {
                return self.claim(key, claim);
            }
            return Step::Now(Err(StoreError::full(FULL)));
        }
        stripe.insert_claim(*key, claim.token, claim.fingerprint);
        table.settle(key, &mut stripe);
        drop(stripe);
        table.make_room(key);
        Step::Now(Ok(ClaimOutcome::Claimed))
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        let table = &*self.table;
        let mut stripe = table.stripe(key);
        if let Some(stored) = stripe.record(key, || table.now()) {
            return Step::Now(Ok(RenewOutcome::Completed(Arc::clone(&stored.record))));
        }
        if let Some(claimed) = stripe.claim(key) {
            let own = claimed.token == claim.token;
            return Step::Now(Ok(if own {
                RenewOutcome::Renewed
            } else {
                RenewOutcome::Lost
            }));
        }
        stripe.insert_claim(*key, claim.token, claim.fingerprint);
        table.settle(key, &mut stripe);
        Step::Now(Ok(RenewOutcome::Restored))
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        let table = &*self.table;
        let (record, size) = table.fitting(record);
        let now = table.now();
        let mut stripe = table.stripe(key);
        let claim = stripe.remove_claim(key);
        // Where a claim stood, no record does.
        if claim.is_none()
            && let Some(stored) = stripe.record(key, || now)
        {
            return Step::Now(Ok(if stored.token == token {
                CompleteOutcome::Stored
            } else {
                CompleteOutcome::Completed(Arc::clone(&stored.record))
            }));
        }
        let stored = Stored {
            key: *key,
            token,
            record,
            expires: now.saturating_add(nanos(retention)).min(LATEST),
        };
        stripe.insert_record(stored, now, size);
        stripe.purge(now, PURGED_BY_A_COMPLETION);
        table.settle(key, &mut stripe);
        drop(stripe);
        let outcome = match claim {
            Some((holder, _)) if holder != token => CompleteOutcome::Displaced,
            Some(_) | None => CompleteOutcome::Stored,
        };
        if let Some((_, Some(waiters))) = claim {
            waiters.notify_waiters();
        }
        table.make_room(key);
        table.report(now);
        sweep::ensure(&self.table);
        Step::Now(Ok(outcome))
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        let table = &*self.table;
        let mut stripe = table.stripe(key);
        if let Some(stored) = stripe.record(key, || table.now()) {
            return Step::Now(Ok(ReleaseOutcome::Completed(Arc::clone(&stored.record))));
        }
        if stripe
            .claim(key)
            .is_none_or(|claimed| claimed.token != token)
        {
            table.settle(key, &mut stripe);
            return Step::Now(Ok(ReleaseOutcome::NotHeld));
        }
        let claim = stripe.remove_claim(key);
        table.settle(key, &mut stripe);
        drop(stripe);
        if let Some((_, Some(waiters))) = claim {
            waiters.notify_waiters();
        }
        Step::Now(Ok(ReleaseOutcome::Released))
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        let mut stripe = self.table.stripe(key);
        let Some(waiters) = stripe.waiters(key) else {
            return Some(Box::pin(ready(())));
        };
        self.table.settle(key, &mut stripe);
        // Made under the lock: from here on every notification reaches it, polled or not.
        Some(Box::pin(waiters.notified_owned()))
    }

    fn never_fails(&self) -> bool {
        true
    }
}
