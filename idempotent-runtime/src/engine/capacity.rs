//! How many handlers may run at a time, and when none does any more.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{sync::Notify, time};

use crate::clock;

pub(super) struct Capacity {
    most: usize,
    taken: AtomicUsize,
    idle: Notify,
}

impl Capacity {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// Takes a place; `false` where all are taken.
    pub(super) fn take(&self) -> bool {
        let free = self.taken.fetch_add(1, Ordering::AcqRel) < self.most;
        if !free {
            self.give_back();
        }
        free
    }

    pub(super) fn give_back(&self) {
        if self.taken.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Waits until no place is taken; how many are when `deadline` has passed.
    pub(super) async fn drained(&self, deadline: Duration) -> Result<(), usize> {
        let deadline = clock::now() + deadline;
        loop {
            // Registered before the count is read, so that no end in between is missed.
            let idle = self.idle.notified();
            match self.taken() {
                0 => return Ok(()),
                taken if time::timeout_at(deadline, idle).await.is_err() => {
                    return if self.taken() == 0 {
                        Ok(())
                    } else {
                        Err(taken)
                    };
                }
                _ => {}
            }
        }
    }
}
