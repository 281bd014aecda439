//! The stripes together: who looks where, the total, and who goes when it is too much.

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::header;
use parking_lot::{Mutex, MutexGuard};

use super::{cost, stripe::Stripe};
use crate::{
    clock::{self, Instant},
    key::StorageKey,
    metrics,
    record::Record,
};

/// How many stripes there are: one for each value of a key's last byte.
const STRIPES: usize = 256;
/// The shortest time between two reports of a gauge, in nanoseconds.
const REPORT_EVERY: u64 = 1_000_000_000;

/// How many records a sweep removes before it lets others take the lock.
const SWEEP_STEP: usize = 128;

/// What all handles of a store share.
#[derive(Debug)]
pub(super) struct Table {
    stripes: Box<[Mutex<Stripe>]>,
    /// When the oldest record of each stripe was made, to find the oldest of all without locks.
    oldest: Box<[AtomicU64; STRIPES]>,
    bytes: AtomicUsize,
    pub(super) max_bytes: AtomicUsize,
    pub(super) refuses: AtomicBool,
    /// A task sweeps.
    pub(super) sweeping: AtomicBool,
    origin: Instant,
    bytes_reported: AtomicU64,
    retention_reported: AtomicU64,
}

impl Table {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::new(Stripe::new())).collect(),
            oldest: Box::new(array::from_fn(|_| AtomicU64::new(u64::MAX))),
            bytes: AtomicUsize::new(0),
            max_bytes: AtomicUsize::new(max_bytes),
            refuses: AtomicBool::new(false),
            sweeping: AtomicBool::new(false),
            origin: clock::now(),
            bytes_reported: AtomicU64::new(u64::MAX),
            retention_reported: AtomicU64::new(u64::MAX),
        }
    }

    /// Nanoseconds since the store was made.
    pub(super) fn now(&self) -> u64 {
        nanos(clock::now().saturating_duration_since(self.origin))
    }

    #[expect(clippy::indexing_slicing, reason = "a byte, and 256 stripes")]
    pub(super) fn stripe(&self, key: &StorageKey) -> MutexGuard<'_, Stripe> {
        self.stripes[usize::from(place(key))].lock()
    }

    /// The locks one after another.
    pub(super) fn stripes(&self) -> impl Iterator<Item = MutexGuard<'_, Stripe>> {
        self.stripes.iter().map(Mutex::lock)
    }

    /// Ends what was done to a stripe: charges it, and notes its oldest record.
    pub(super) fn settle(&self, key: &StorageKey, stripe: &mut Stripe) {
        self.settle_at(usize::from(place(key)), stripe);
    }

    fn settle_at(&self, at: usize, stripe: &mut Stripe) {
        stripe.charge(&self.bytes);
        if let Some(oldest) = self.oldest.get(at) {
            let now = stripe.order().oldest();
            if oldest.load(Ordering::Relaxed) != now {
                oldest.store(now, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

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
        let mut headers = record.headers.iter();
        let location = headers.find(|(name, _)| *name == header::LOCATION);
        let location = location.map(|(_, value)| value.clone());
        let marker = Arc::new(Record::marker(record.fingerprint, record.status, location));
        let size = cost::of(&marker);
        (marker, size)
    }

    /// Drops the oldest records until the bound holds, or only claims are left. Called once `key`
    /// has taken more room; of two records of the same age, the one beside it goes last.
    pub(super) fn make_room(&self, key: &StorageKey) {
        if self.over() && !self.refuses.load(Ordering::Relaxed) {
            self.evict(usize::from(place(key)));
        }
    }

    #[cold]
    fn evict(&self, last: usize) {
        let now = self.now();
        let mut evicted = 0;
        let mut age = 0;
        while self.over() {
            let ages = self.oldest.iter().map(|born| born.load(Ordering::Relaxed));
            let oldest = ages
                .enumerate()
                .min_by_key(|&(at, born)| (born, at == last));
            let Some((at, _)) = oldest.filter(|&(_, born)| born != u64::MAX) else {
                self.give_back();
                break;
            };
            let Some(mut stripe) = self.stripes.get(at).map(Mutex::lock) else {
                break;
            };
            if stripe.purge(now, 1) == 0
                && let Some(born) = stripe.evict()
            {
                evicted += 1;
                age = now.saturating_sub(born);
            }
            stripe.give_back();
            self.settle_at(at, &mut stripe);
        }
        if evicted > 0 {
            metrics::evicted(evicted);
            if due(&self.retention_reported, now) {
                metrics::effective_retention(Duration::from_nanos(age));
            }
        }
    }

    /// Gives the tables of all empty stripes back.
    fn give_back(&self) {
        for (at, stripe) in self.stripes.iter().enumerate() {
            let mut stripe = stripe.lock();
            stripe.give_back();
            self.settle_at(at, &mut stripe);
        }
    }

    /// Removes some of what has expired from one stripe.
    pub(super) fn sweep(&self, at: usize, now: u64) -> Swept {
        let Some(stripe) = self.stripes.get(at) else {
            return Swept::End;
        };
        let mut stripe = stripe.lock();
        let purged = stripe.purge(now, SWEEP_STEP);
        if purged < SWEEP_STEP {
            stripe.give_back();
        }
        self.settle_at(at, &mut stripe);
        if purged == SWEEP_STEP {
            return Swept::Part;
        }
        Swept::Stripe {
            next_expiry: stripe.order().next_expiry(),
        }
    }

    /// Reports the total, unless that was done a moment ago.
    pub(super) fn report(&self, now: u64) {
        if due(&self.bytes_reported, now) {
            metrics::stored_bytes(self.bytes());
        }
    }

    /// Reports the total.
    pub(super) fn report_now(&self, now: u64) {
        self.bytes_reported.store(now, Ordering::Relaxed);
        metrics::stored_bytes(self.bytes());
    }
}

/// How far a sweep came.
pub(super) enum Swept {
    /// More of this stripe has expired.
    Part,
    /// Nothing more of this stripe has.
    Stripe {
        /// When the next record does; `u64::MAX` without one.
        next_expiry: u64,
    },
    /// There are no more stripes.
    End,
}

/// Whether a gauge is due, whose registry look-up would cost more than a whole completion.
fn due(reported: &AtomicU64, now: u64) -> bool {
    let last = reported.load(Ordering::Relaxed);
    if last != u64::MAX && now.saturating_sub(last) < REPORT_EVERY {
        return false;
    }
    reported
        .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

fn place(key: &StorageKey) -> u8 {
    let [.., last] = *key.as_bytes();
    last
}

/// A duration in nanoseconds; the longest for one over 584 years.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
