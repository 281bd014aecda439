//! The records of a stripe in the order in which they expire, without sorting.
//!
//! A service has a few retentions, each the same for many records. Records of one retention come
//! in the order of their expiry, so a handful of queues holds them all, and what expires next is
//! at the front of one of them. A queue is also in the order of age, which eviction needs.

use std::{cmp::Reverse, collections::VecDeque};

use super::cost::allocated;

/// More than the retentions of a service. Past it a queue is no longer quite in order, and the
/// records that stand behind a later one are purged with it.
const MOST_QUEUES: usize = 8;
/// A queue of this capacity is never made smaller.
const SMALL: usize = 16;

/// Where a record is found again, and since and until when it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) born: u64,
    pub(super) expires: u64,
}

#[derive(Debug)]
pub(super) struct Order {
    queues: Vec<VecDeque<Entry>>,
}

impl Order {
    pub(super) const fn new() -> Self {
        Self { queues: Vec::new() }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        let expiry = |queue: &VecDeque<Entry>| queue.back().map_or(0, |last| last.expires);
        let full = self.queues.len() >= MOST_QUEUES;
        let fitting = self
            .queues
            .iter_mut()
            .filter(|queue| full || expiry(queue) <= entry.expires)
            .max_by_key(|queue| {
                let last = expiry(queue);
                // the nearest before it; else, when no queue may be added, the nearest after it
                (last <= entry.expires, Reverse(last.abs_diff(entry.expires)))
            });
        match fitting {
            Some(queue) => queue.push_back(entry),
            None => self.queues.push(VecDeque::from([entry])),
        }
    }

    /// Takes an entry that has expired, if there is one.
    pub(super) fn pop_expired(&mut self, now: u64) -> Option<Entry> {
        let at = self
            .queues
            .iter()
            .position(|queue| queue.front().is_some_and(|first| first.expires <= now))?;
        self.pop(at)
    }

    /// Takes the entry that has stood longest.
    pub(super) fn pop_oldest(&mut self) -> Option<Entry> {
        let (at, _) = self
            .queues
            .iter()
            .enumerate()
            .filter_map(|(at, queue)| Some((at, queue.front()?.born)))
            .min_by_key(|&(_, born)| born)?;
        self.pop(at)
    }

    fn pop(&mut self, at: usize) -> Option<Entry> {
        let queue = self.queues.get_mut(at)?;
        let entry = queue.pop_front();
        if queue.is_empty() {
            self.queues.swap_remove(at);
        } else if queue.capacity() > SMALL && queue.len() * 4 <= queue.capacity() {
            queue.shrink_to(queue.len() * 2);
        }
        entry
    }

    /// When the oldest entry was made; `u64::MAX` without one.
    pub(super) fn oldest(&self) -> u64 {
        let fronts = self.queues.iter().filter_map(VecDeque::front);
        fronts.map(|first| first.born).min().unwrap_or(u64::MAX)
    }

    /// When the next entry expires; `u64::MAX` without one.
    pub(super) fn next_expiry(&self) -> u64 {
        let fronts = self.queues.iter().filter_map(VecDeque::front);
        fronts.map(|first| first.expires).min().unwrap_or(u64::MAX)
    }

    /// The bytes that this takes from the allocator.
    pub(super) fn bytes(&self) -> usize {
        let entries = self
            .queues
            .iter()
            .map(|queue| allocated(queue.capacity() * size_of::<Entry>()));
        entries.sum::<usize>() + allocated(self.queues.capacity() * size_of::<VecDeque<Entry>>())
    }
}
