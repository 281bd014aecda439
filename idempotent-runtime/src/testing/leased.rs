//! A shared store without a server: what leases do, on Tokio's clock.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use crate::{
    clock::{self, Instant},
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, Token},
    store::{
        Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step, Store,
        StoreError,
    },
};

/// A [leased](Level::Leased) store in memory, for tests under paused time.
///
/// Runtimes that are given clones of one are replicas on one store. It keeps everything that it is
/// not asked about again, so it is no store for a service, and it tells no waiter of an end, so
/// that waiters poll. Inside a [`Faulty`](super::Faulty) it also awaits, fails and is late.
///
/// ```
/// use idempotent_runtime::{Caller, IdempotencyRuntime, testing::LeasedStore};
///
/// let store = LeasedStore::new();
/// let replica = || {
///     let builder = IdempotencyRuntime::builder().caller(Caller::shared());
///     builder.store(store.clone()).build()
/// };
/// let (one, two) = (replica()?, replica()?);
/// # drop((one, two));
/// # Ok::<(), idempotent_runtime::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct LeasedStore {
    slots: Arc<Mutex<HashMap<StorageKey, Slot>>>,
}

struct Slot {
    token: Token,
    ends: Option<Instant>,
    holds: Holds,
}

enum Holds {
    Claim {
        fingerprint: Fingerprint,
        lapses: Option<Instant>,
    },
    Record(Arc<Record>),
}

/// What stands at a key.
enum Stands {
    Nothing,
    Claim {
        own: bool,
        fingerprint: Fingerprint,
        lapses: Option<Instant>,
    },
    Record {
        own: bool,
        record: Arc<Record>,
    },
}

type Slots<'a> = MutexGuard<'a, HashMap<StorageKey, Slot>>;

impl LeasedStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub fn clear(&self) {
        self.slots.lock().clear();
    }

    /// What stands at a key for the holder of `token`, and the lock under which to change it.
    fn look(&self, key: &StorageKey, token: Token) -> (Stands, Slots<'_>) {
        let mut slots = self.slots.lock();
        let expired = |slot: &Slot| slot.ends.is_some_and(|ends| ends <= clock::now());
        if slots.get(key).is_some_and(expired) {
            slots.remove(key);
        }
        let stands = match slots.get(key) {
            None => Stands::Nothing,
            Some(slot) => {
                let own = slot.token == token;
                match &slot.holds {
                    Holds::Claim {
                        fingerprint,
                        lapses,
                    } => Stands::Claim {
                        own,
                        fingerprint: *fingerprint,
                        lapses: *lapses,
                    },
                    Holds::Record(record) => Stands::Record {
                        own,
                        record: Arc::clone(record),
                    },
                }
            }
        };
        (stands, slots)
    }
}

fn claimed(claim: Claim) -> Slot {
    let lapses = clock::now().checked_add(claim.lease);
    Slot {
        token: claim.token,
        ends: lapses.and_then(|lapses| lapses.checked_add(claim.kept)),
        holds: Holds::Claim {
            fingerprint: claim.fingerprint,
            lapses,
        },
    }
}

impl Store for LeasedStore {
    fn level(&self) -> Level {
        Level::Leased
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        let (stands, mut slots) = self.look(key, claim.token);
        Step::Now(Ok(match stands {
            Stands::Nothing | Stands::Claim { own: true, .. } => {
                slots.insert(*key, claimed(claim));
                ClaimOutcome::Claimed
            }
            Stands::Claim {
                own: false,
                fingerprint,
                lapses,
            } => match lapses.map(|lapses| lapses.saturating_duration_since(clock::now())) {
                Some(Duration::ZERO) => ClaimOutcome::Lapsed { fingerprint },
                lease_left => ClaimOutcome::InProgress {
                    fingerprint,
                    lease_left: Some(lease_left.unwrap_or(Duration::MAX)),
                },
            },
            Stands::Record { record, .. } => ClaimOutcome::Completed(record),
        }))
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        let (stands, mut slots) = self.look(key, claim.token);
        let outcome = match stands {
            Stands::Nothing => RenewOutcome::Restored,
            Stands::Claim { own: true, .. } => RenewOutcome::Renewed,
            Stands::Claim { own: false, .. } => return Step::Now(Ok(RenewOutcome::Lost)),
            Stands::Record { record, .. } => {
                return Step::Now(Ok(RenewOutcome::Completed(record)));
            }
        };
        slots.insert(*key, claimed(claim));
        Step::Now(Ok(outcome))
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        let (stands, mut slots) = self.look(key, token);
        let outcome = match stands {
            Stands::Nothing | Stands::Claim { own: true, .. } => CompleteOutcome::Stored,
            Stands::Claim { own: false, .. } => CompleteOutcome::Displaced,
            Stands::Record { own: true, .. } => return Step::Now(Ok(CompleteOutcome::Stored)),
            Stands::Record { own: false, record } => {
                return Step::Now(Ok(CompleteOutcome::Completed(record)));
            }
        };
        let slot = Slot {
            token,
            ends: clock::now().checked_add(retention),
            holds: Holds::Record(record),
        };
        slots.insert(*key, slot);
        Step::Now(Ok(outcome))
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        let (stands, mut slots) = self.look(key, token);
        Step::Now(Ok(match stands {
            Stands::Claim { own: true, .. } => {
                slots.remove(key);
                ReleaseOutcome::Released
            }
            Stands::Nothing | Stands::Claim { own: false, .. } => ReleaseOutcome::NotHeld,
            Stands::Record { record, .. } => ReleaseOutcome::Completed(record),
        }))
    }
}

impl fmt::Debug for LeasedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedStore").finish_non_exhaustive()
    }
}
