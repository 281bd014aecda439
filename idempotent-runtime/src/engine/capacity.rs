//! How many handlers may run at a time, and when nothing is under way any more.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{sync::Notify, time};

use super::Engine;
use crate::shared::{Apart, Shared};

pub(super) struct Capacity {
    most: usize,
    taken: Apart<AtomicUsize>,
    /// What is no run, or not yet, and must end before a shutdown all the same: requests that wait
    /// for their claim, and reports that nobody waits for.
    pending: AtomicUsize,
    idle: Notify,
}

impl Capacity {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Apart::default(),
            pending: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// Takes a place; `false` where all are taken.
    pub(super) fn take(&self) -> bool {
        let one_more = |taken| (taken < self.most).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more)
            .is_ok()
    }

    pub(super) fn give_back(&self) {
        self.end_one(&self.taken);
    }

    /// Something begins that [`drained`](Self::drained) waits for.
    pub(super) fn begin_pending(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_pending(&self) {
        self.end_one(&self.pending);
    }

    fn end_one(&self, count: &AtomicUsize) {
        if count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// What is still under way. A request is pending until it has its place, so in this order none
    /// slips through.
    fn under_way(&self) -> usize {
        self.pending.load(Ordering::Acquire) + self.taken()
    }

    /// Waits until nothing is under way; how much is when `deadline` has passed.
    pub(super) async fn drained(&self, deadline: Duration) -> Result<(), usize> {
        let idle = async {
            loop {
                // Registered before the counts are read, so that no end in between is missed.
                let idle = self.idle.notified();
                if self.under_way() == 0 {
                    return;
                }
                idle.await;
            }
        };
        match time::timeout(deadline, idle).await {
            Ok(()) => Ok(()),
            Err(_) => match self.under_way() {
                0 => Ok(()),
                still => Err(still),
            },
        }
    }
}

/// Something that a drain waits for although it is no run.
pub(super) struct UnderWay(Shared<Engine>);

impl Shared<Engine> {
    pub(super) fn under_way(&self) -> UnderWay {
        self.capacity.begin_pending();
        UnderWay(self.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.capacity.end_pending();
    }
}
