//! One of the 256 parts of the table, behind one lock: the claims and records of its keys.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hashbrown::HashTable;
use tokio::sync::Notify;

use super::{
    cost::{self, allocated, counted},
    order::{Entry, Order},
};
use crate::{
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, Token},
};

/// A table of this capacity is never made smaller, unless it is given back as a whole.
const SMALL: usize = 28;

/// A request that runs.
#[derive(Debug)]
pub(super) struct Claimed {
    key: StorageKey,
    pub(super) token: Token,
    pub(super) fingerprint: Fingerprint,
    /// Made by the first request that waits for this one.
    waiters: Option<Arc<Notify>>,
}

/// A request that has finished. It remembers who wrote it, so that a repeated completion is
/// known from another request's.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) key: StorageKey,
    pub(super) token: Token,
    pub(super) record: Arc<Record>,
    pub(super) expires: u64,
}

/// Claims and records in a table each: claims are few and their table is hot, and no walk over
/// records, be it for expiry or for room, ever meets a claim.
#[derive(Debug)]
#[repr(align(128))] // two cache lines, so that two stripes share none
pub(super) struct Stripe {
    claims: HashTable<Claimed>,
    records: HashTable<Stored>,
    order: Order,
    /// What records and notifications take outside the tables.
    held: usize,
    /// What the store has been told that this stripe takes.
    charged: usize,
}

impl Stripe {
    pub(super) const fn new() -> Self {
        Self {
            claims: HashTable::new(),
            records: HashTable::new(),
            order: Order::new(),
            held: 0,
            charged: 0,
        }
    }

    /// The claims and the records.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.claims.len(), self.records.len())
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// The record at a key. One that has expired is removed; `now` is asked only if there is one.
    pub(super) fn record(
        &mut self,
        key: &StorageKey,
        now: impl FnOnce() -> u64,
    ) -> Option<&Stored> {
        let found = self
            .records
            .find_entry(key.hash(), |stored| stored.key == *key);
        let entry = found.ok()?;
        if entry.get().expires > now() {
            return Some(entry.into_mut());
        }
        let (stored, _) = entry.remove();
        self.held -= cost::of(&stored.record);
        None
    }

    pub(super) fn claim(&self, key: &StorageKey) -> Option<&Claimed> {
        self.claims.find(key.hash(), |claimed| claimed.key == *key)
    }

    pub(super) fn insert_claim(&mut self, key: StorageKey, token: Token, fingerprint: Fingerprint) {
        let claimed = Claimed {
            key,
            token,
            fingerprint,
            waiters: None,
        };
        self.claims
            .insert_unique(key.hash(), claimed, |claimed| claimed.key.hash());
    }

    /// Removes a claim, and gives back who wants to know of it.
    pub(super) fn remove_claim(
        &mut self,
        key: &StorageKey,
    ) -> Option<(Token, Option<Arc<Notify>>)> {
        let entry = self
            .claims
            .find_entry(key.hash(), |claimed| claimed.key == *key)
            .ok()?;
        let (claimed, _) = entry.remove();
        if claimed.waiters.is_some() {
            self.held -= counted::<Notify>();
        }
        shrink(&mut self.claims, |claimed| claimed.key.hash());
        Some((claimed.token, claimed.waiters))
    }

    /// What tells of the end of a claim, if one stands.
    pub(super) fn waiters(&mut self, key: &StorageKey) -> Option<Arc<Notify>> {
        let claimed = self
            .claims
            .find_mut(key.hash(), |claimed| claimed.key == *key)?;
        let held = &mut self.held;
        let waiters = claimed.waiters.get_or_insert_with(|| {
            *held += counted::<Notify>();
            Arc::default()
        });
        Some(Arc::clone(waiters))
    }

    /// Adds a record, which takes `size` bytes, at a key where none stands.
    pub(super) fn insert_record(&mut self, stored: Stored, born: u64, size: usize) {
        self.held += size;
        let hash_of = stored.key.hash();
        let expires = stored.expires;
        self.records
            .insert_unique(hash_of, stored, |stored| stored.key.hash());
        self.order.push(Entry {
            hash: hash_of,
            born,
            expires,
        });
    }

    /// Removes at most `most` of the entries that have expired; how many.
    pub(super) fn purge(&mut self, now: u64, most: usize) -> usize {
        for purged in 0..most {
            let Some(entry) = self.order.pop_expired(now) else {
                return purged;
            };
            self.remove_entry(entry);
        }
        most
    }

    /// Removes the record that has stood longest; when it was made.
    pub(super) fn evict(&mut self) -> Option<u64> {
        loop {
            let entry = self.order.pop_oldest()?;
            if self.remove_entry(entry) {
                return Some(entry.born);
            }
        }
    }

    /// An entry whose record has gone already finds nothing: another record of the key has
    /// another expiry.
    fn remove_entry(&mut self, entry: Entry) -> bool {
        self.remove(entry.hash, |stored| {
            stored.expires == entry.expires && stored.key.hash() == entry.hash
        })
    }

    fn remove(&mut self, hash_of: u64, which: impl FnMut(&Stored) -> bool) -> bool {
        let Ok(entry) = self.records.find_entry(hash_of, which) else {
            return false;
        };
        let (stored, _) = entry.remove();
        self.held -= cost::of(&stored.record);
        shrink(&mut self.records, |stored| stored.key.hash());
        true
    }

    /// Gives the tables of an empty stripe back.
    pub(super) fn give_back(&mut self) {
        if self.len() == (0, 0) {
            self.claims = HashTable::new();
            self.records = HashTable::new();
            self.order = Order::new();
        }
    }

    /// Tells the store's total what this stripe takes by now.
    pub(super) fn charge(&mut self, total: &AtomicUsize) {
        let now = self.held
            + allocated(self.claims.allocation_size())
            + allocated(self.records.allocation_size())
            + self.order.bytes();
        let before = mem::replace(&mut self.charged, now);
        if now > before {
            total.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            total.fetch_sub(before - now, Ordering::Relaxed);
        }
    }
}

/// Makes a table smaller of which an eighth or less is used, after a burst.
fn shrink<T>(table: &mut HashTable<T>, hash_of: impl Fn(&T) -> u64) {
    if table.capacity() > SMALL && table.len() * 8 <= table.capacity() {
        table.shrink_to(table.len() * 2, hash_of);
    }
}
