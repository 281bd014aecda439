//! How many requests wait, by key.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::key::StorageKey;

/// How many requests wait, by key.
pub(super) struct Waiters {
    most: usize,
    by_key: Mutex<HashMap<StorageKey, usize>>,
}

impl Waiters {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            by_key: Mutex::default(),
        }
    }

    /// A place for one more; `None` where all are taken.
    pub(super) fn enter(&self, key: StorageKey) -> Option<Waiting<'_>> {
        let mut by_key = self.by_key.lock();
        let waiting = by_key.entry(key).or_default();
        if *waiting >= self.most {
            return None;
        }
        *waiting += 1;
        Some(Waiting { waiters: self, key })
    }
}

/// One waiter's place, given back when it is dropped.
pub(super) struct Waiting<'a> {
    waiters: &'a Waiters,
    key: StorageKey,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut by_key = self.waiters.by_key.lock();
        if let Some(waiting) = by_key.get_mut(&self.key) {
            *waiting -= 1;
            if *waiting == 0 {
                by_key.remove(&self.key);
            }
        }
    }
}
