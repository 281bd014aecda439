//! The byte bound: what fits, who goes when it is too much, and who stays out.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    cost,
    stripe::Stripe,
    table::{STRIPES, SWEEP_STEP, Table, due, place},
};
use crate::{key::StorageKey, metrics, record::Record};

/// A stripe of this many records has about as old ones as every other.
const MANY: usize = 128;

impl Table {
    fn over(&self) -> bool {
        self.bytes() > self.max_bytes.load(Ordering::Relaxed)
    }

    /// Whether a new claim is refused.
    pub(super) fn refuses_claims(&self) -> bool {
        self.refuses.load(Ordering::Relaxed) && self.over()
    }

    /// The record, or the note that its run took effect where the record has no room: alone
    /// larger than half of the store, or, where nothing is evicted, an eighth over the bound.
    /// And the bytes that it takes.
    pub(super) fn fitting(&self, record: Arc<Record>) -> (Arc<Record>, usize) {
        let most = self.max_bytes.load(Ordering::Relaxed);
        let size = cost::of(&record);
        let fits = if self.refuses.load(Ordering::Relaxed) {
            self.bytes().saturating_add(size) <= most.saturating_add(most / 8)
        } else {
            size <= most / 2
        };
        if fits {
            return (record, size);
        }
        metrics::unreplayable("too_large");
        let marker = Arc::new(record.without_response());
        let size = cost::of(&marker);
        (marker, size)
    }

    /// Drops old records until the bound holds, or only claims are left. Called once `key` has
    /// taken more room.
    pub(super) fn make_room(&self, key: &StorageKey) {
        if self.over() && !self.refuses.load(Ordering::Relaxed) {
            self.evict(place(key));
        }
    }

    #[cold]
    fn evict(&self, last: usize) {
        let mut evicted = Evicted::at(self.now());
        // Keys are spread evenly, so in a stripe of many records the oldest is about the oldest of
        // all, and this stripe is at hand.
        while self.over() && self.change(last, |stripe| evicted.one_of_many(stripe)) {}
        while self.over() {
            let Some(at) = self.oldest(last) else {
                (0..STRIPES).for_each(|at| self.change(at, Stripe::give_back));
                break;
            };
            self.change(at, |stripe| {
                evicted.one(stripe);
                stripe.give_back();
            });
        }
        if evicted.records > 0 {
            metrics::evicted(evicted.records);
            if due(&self.retention_reported, evicted.now) {
                metrics::effective_retention(Duration::from_nanos(evicted.age));
            }
        }
    }

    /// Removes what has expired until new claims are taken again; whether they are. Only where
    /// nobody sweeps is there much to remove.
    #[cold]
    pub(super) fn drop_expired(&self) -> bool {
        let now = self.now();
        (0..STRIPES).any(|at| {
            self.change(at, |stripe| stripe.purge(now, SWEEP_STEP));
            !self.refuses_claims()
        })
    }
}

/// What one completion has pushed out.
struct Evicted {
    now: u64,
    records: u64,
    /// Of the last one, in nanoseconds.
    age: u64,
}

impl Evicted {
    fn at(now: u64) -> Self {
        Self {
            now,
            records: 0,
            age: 0,
        }
    }

    /// Removes a record that has expired, else the oldest.
    fn one(&mut self, stripe: &mut Stripe) {
        if stripe.purge(self.now, 1) == 0
            && let Some(born) = stripe.evict()
        {
            self.records += 1;
            self.age = self.now.saturating_sub(born);
        }
    }

    /// The same, where there are many; whether there are.
    fn one_of_many(&mut self, stripe: &mut Stripe) -> bool {
        let (_, records) = stripe.len();
        if records >= MANY {
            self.one(stripe);
        }
        records >= MANY
    }
}
