//! The stripes together: which one a key is in, and what all of them take.

use std::{
    array,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

use super::stripe::Stripe;
use crate::{
    clock::{self, Instant},
    key::StorageKey,
    metrics,
    shared::Apart,
};

/// How many stripes there are: one for each value of a key's last byte.
pub(super) const STRIPES: usize = 256;
/// The shortest time between two reports of a gauge, in nanoseconds.
const REPORT_EVERY: u64 = 1_000_000_000;

/// How many records a sweep removes before it lets others take the lock.
pub(super) const SWEEP_STEP: usize = 128;

/// What all handles of a store share.
#[derive(Debug)]
pub(super) struct Table {
    stripes: Box<[Mutex<Stripe>]>,
    /// When the oldest record of each stripe was made, to find the oldest of all without locks.
    oldest: Box<[AtomicU64; STRIPES]>,
    bytes: Apart<AtomicUsize>,
    pub(super) max_bytes: AtomicUsize,
    pub(super) refuses: AtomicBool,
    /// A task sweeps.
    pub(super) sweeping: AtomicBool,
    origin: Instant,
    bytes_reported: AtomicU64,
    pub(super) retention_reported: AtomicU64,
}

impl Table {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::new(Stripe::new())).collect(),
            oldest: Box::new(array::from_fn(|_| AtomicU64::new(u64::MAX))),
            bytes: Apart::default(),
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
        self.stripes[place(key)].lock()
    }

    /// The locks one after another.
    pub(super) fn stripes(&self) -> impl Iterator<Item = MutexGuard<'_, Stripe>> {
        self.stripes.iter().map(Mutex::lock)
    }

    /// Ends what was done to a stripe: charges it, and notes its oldest record.
    pub(super) fn settle(&self, key: &StorageKey, stripe: &mut Stripe) {
        self.settle_at(place(key), stripe);
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

    /// Changes the stripe at this place, and settles it.
    #[expect(
        clippy::indexing_slicing,
        reason = "places come from keys and from 0..STRIPES"
    )]
    pub(super) fn change<T>(&self, at: usize, change: impl FnOnce(&mut Stripe) -> T) -> T {
        let mut stripe = self.stripes[at].lock();
        let changed = change(&mut stripe);
        self.settle_at(at, &mut stripe);
        changed
    }

    /// The place of the oldest record; `last` is taken only if no other has one as old.
    pub(super) fn oldest(&self, last: usize) -> Option<usize> {
        let ages = || self.oldest.iter().map(|born| born.load(Ordering::Relaxed));
        // Two plain passes: one over pairs was measured to take ten times as long.
        let oldest = ages().fold(u64::MAX, u64::min);
        let as_old = |(at, born)| (born == oldest).then_some(at);
        let mut places = ages().enumerate().filter_map(as_old);
        let other = places.find(|&at| at != last).unwrap_or(last);
        (oldest != u64::MAX).then_some(other)
    }

    /// Removes some of what has expired from one stripe.
    pub(super) fn sweep(&self, at: usize, now: u64) -> Swept {
        if at >= STRIPES {
            return Swept::End;
        }
        self.change(at, |stripe| {
            if stripe.purge(now, SWEEP_STEP) == SWEEP_STEP {
                return Swept::Part;
            }
            stripe.give_back();
            Swept::Stripe {
                next_expiry: stripe.order().next_expiry(),
            }
        })
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
pub(super) fn due(reported: &AtomicU64, now: u64) -> bool {
    let last = reported.load(Ordering::Relaxed);
    if last != u64::MAX && now.saturating_sub(last) < REPORT_EVERY {
        return false;
    }
    reported
        .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// The place of a key's stripe.
pub(super) fn place(key: &StorageKey) -> usize {
    let [.., last] = *key.as_bytes();
    usize::from(last)
}

/// A duration in nanoseconds; the longest for one over 584 years.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
