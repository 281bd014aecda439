//! How a duplicate waits for the first request: woken by the store where it can, polling besides.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time;

use super::{Look, Phase, Request, in_time};
use crate::{clock, key::StorageKey, metrics};

/// The first pause between two looks at a key that the store does not watch; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The pause where the store wakes its waiters, in case that it does not.
const BACKSTOP: Duration = Duration::from_secs(1);

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

    fn enter(&self, key: StorageKey) -> Option<Place<'_>> {
        let mut by_key = self.by_key.lock();
        let waiting = by_key.entry(key).or_default();
        if *waiting >= self.most {
            return None;
        }
        *waiting += 1;
        Some(Place { waiters: self, key })
    }
}

/// One waiter's place, given back when it is dropped.
struct Place<'a> {
    waiters: &'a Waiters,
    key: StorageKey,
}

impl Drop for Place<'_> {
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

impl Request {
    /// Waits until the key is free or has a record, at most as long as the policy says; then it
    /// is still [`Look::Busy`].
    pub(super) async fn wait(&self, mut lease_left: Option<Duration>, phase: &Arc<Phase>) -> Look {
        let Some(_place) = self.engine.waiters.enter(self.key) else {
            return Look::Busy { lease_left };
        };
        let began = clock::now();
        let deadline = began + self.policy.wait;
        let mut pause = FIRST_PAUSE;
        let look = loop {
            let now = clock::now();
            if now >= deadline || phase.detached() {
                break Look::Busy { lease_left };
            }
            let gone = self.engine.store.watch(&self.key);
            if gone.is_some() {
                // What happened before the watch began does not wake it.
                match self.look_again().await {
                    Look::Busy { lease_left: left } => lease_left = left,
                    look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => break look,
                }
            }
            let turn = if gone.is_some() { BACKSTOP } else { pause };
            pause = (pause * 2).min(LONGEST_PAUSE);
            let until =
                deadline.min(now + lease_left.map_or(turn, |left| left.clamp(FIRST_PAUSE, turn)));
            phase.waiting(true);
            match gone {
                Some(gone) => drop(time::timeout_at(until, gone).await),
                None => time::sleep_until(until).await,
            }
            phase.waiting(false);
            match self.look_again().await {
                Look::Busy { lease_left: left } => lease_left = left,
                look @ (Look::Run { .. } | Look::Replay(_) | Look::Refuse(_)) => break look,
            }
        };
        metrics::waited(clock::now() - began);
        look
    }

    async fn look_again(&self) -> Look {
        let outcome = in_time(self.engine.store_timeout, self.claim()).await;
        self.look(outcome, true)
    }
}
