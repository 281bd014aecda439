//! The locks that this process holds, from a claim to its report.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    clock::{self, Instant},
    fingerprint::Fingerprint,
    key::StorageKey,
    lock::{Guard, LockError},
    record::Token,
    step::BoxFuture,
    store::Claim,
};

/// A table is not searched for forgotten claims below this many keys.
const FEW: usize = 64;

/// Guards by key and token. A key has several only after one has lapsed.
#[derive(Default)]
pub(super) struct Claims(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_key: HashMap<StorageKey, KeyClaims>,
    /// How many keys there may be before the next search for forgotten claims.
    most: usize,
}

#[derive(Default)]
struct KeyClaims {
    held: Vec<OwnClaim>,
    watchers: Arc<Notify>,
}

struct OwnClaim {
    token: Token,
    fingerprint: Fingerprint,
    /// When it has lapsed for certain; `None`: never.
    lapses: Option<Instant>,
    guard: Guard,
}

/// A guard that is no longer in the table. Those who watch its claim are woken when it has gone.
pub(super) struct Leaving {
    guard: Option<Guard>,
    watchers: Arc<Notify>,
}

impl OwnClaim {
    /// How long it stands at most, unless it has lapsed.
    fn left(&self, now: Instant) -> Option<Duration> {
        let left = self.lapses.map_or(Duration::MAX, |lapses| {
            lapses.saturating_duration_since(now)
        });
        (!left.is_zero()).then_some(left)
    }
}

impl Claims {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        let table = self.0.lock();
        table.by_key.values().map(|key| key.held.len()).sum()
    }

    /// Keeps the guard of a claim that has just been taken.
    pub(super) fn keep(&self, key: &StorageKey, claim: Claim, guard: Guard) {
        let now = clock::now();
        let held = OwnClaim {
            token: claim.token,
            fingerprint: claim.fingerprint,
            lapses: now.checked_add(claim.lease),
            guard,
        };
        let mut table = self.0.lock();
        table.by_key.entry(*key).or_default().held.push(held);
        let forgotten = table.forgotten(now);
        drop(table);
        // Not under the lock: a guard's end is a lock's own code.
        drop(forgotten);
    }

    /// Begins to renew the lock of a claim, if it is in the table.
    pub(super) fn renew(
        &self,
        key: &StorageKey,
        token: Token,
        lease: Duration,
    ) -> Option<impl Future<Output = Result<bool, LockError>> + Send + use<>> {
        let table = self.0.lock();
        let mut held = table.by_key.get(key)?.held.iter();
        let held = held.find(|held| held.token == token)?;
        Some(held.guard.renew(lease))
    }

    /// The lock of a claim has been renewed.
    pub(super) fn renewed(&self, key: &StorageKey, token: Token, lease: Duration) {
        let mut table = self.0.lock();
        let held = table.by_key.get_mut(key).map(|key| key.held.iter_mut());
        let held = held.and_then(|mut held| held.find(|held| held.token == token));
        if let Some(held) = held {
            held.lapses = clock::now().checked_add(lease);
        }
    }

    /// Takes a claim out, to give its lock up.
    pub(super) fn take(&self, key: &StorageKey, token: Token) -> Option<Leaving> {
        let mut table = self.0.lock();
        let at = table.by_key.get_mut(key)?;
        let index = at.held.iter().position(|held| held.token == token)?;
        let leaving = Leaving {
            guard: Some(at.held.swap_remove(index).guard),
            watchers: Arc::clone(&at.watchers),
        };
        if at.held.is_empty() {
            table.by_key.remove(key);
        }
        Some(leaving)
    }

    /// The request of this process that has the key, and how long it has it at most.
    pub(super) fn holder(&self, key: &StorageKey) -> Option<(Fingerprint, Duration)> {
        let now = clock::now();
        let table = self.0.lock();
        let mut held = table.by_key.get(key)?.held.iter();
        held.find_map(|held| Some((held.fingerprint, held.left(now)?)))
    }

    /// Whether another request of this process has the key.
    pub(super) fn has_another(&self, key: &StorageKey, token: Token) -> bool {
        let now = clock::now();
        let table = self.0.lock();
        table.by_key.get(key).is_some_and(|key| {
            let mut held = key.held.iter();
            held.any(|held| held.token != token && held.left(now).is_some())
        })
    }

    /// Wakes those who watch the claims at a key, since a record stands there now.
    pub(super) fn wake(&self, key: &StorageKey) {
        if let Some(key) = self.0.lock().by_key.get(key) {
            key.watchers.notify_waiters();
        }
    }

    /// Ends when the claim of this process at the key has gone; `None` where it has none.
    pub(super) fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        let now = clock::now();
        let table = self.0.lock();
        let key = table.by_key.get(key)?;
        key.held.iter().find(|held| held.left(now).is_some())?;
        // Made under the lock: from here on every notification reaches it, polled or not.
        Some(Box::pin(Arc::clone(&key.watchers).notified_owned()))
    }
}

impl Table {
    /// Takes out what has lapsed without a report, each time that the table has doubled.
    fn forgotten(&mut self, now: Instant) -> Vec<OwnClaim> {
        let mut forgotten = Vec::new();
        if self.by_key.len() <= self.most.max(FEW) {
            return forgotten;
        }
        self.by_key.retain(|_, key| {
            forgotten.extend(key.held.extract_if(.., |held| held.left(now).is_none()));
            !key.held.is_empty()
        });
        self.most = 2 * self.by_key.len();
        forgotten
    }
}

impl Leaving {
    /// Gives the lock up, and waits for it. Whether it was held.
    pub(super) async fn release(mut self) -> Result<bool, LockError> {
        match self.guard.take() {
            Some(guard) => guard.release().await,
            None => Ok(false),
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        drop(self.guard.take());
        self.watchers.notify_waiters();
    }
}
