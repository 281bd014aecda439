//! One acquisition of one key: attempts, until it is held or the wait is over.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::{runtime::Handle, time};

use super::entry::Entry;
use crate::{
    clock,
    connection::Connection,
    lock::{error::LockError, guard::Hold},
    record::Token,
    step::Step,
};

/// The first pause between two attempts of one that waits; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Acquisition(Arc<Entry>);

impl Acquisition {
    pub(super) fn new(connection: Connection, stored: String) -> Self {
        Self(Arc::new(Entry {
            connection,
            stored,
            owner: format!("{:032x}", u128::from_be_bytes(*Token::unique().as_bytes())),
            runtime: Handle::try_current().ok(),
        }))
    }

    /// Whether it was taken, at most after `wait`.
    pub(super) async fn acquire(&self, ttl: Duration, wait: Duration) -> Result<bool, LockError> {
        let deadline = clock::now().checked_add(wait);
        let mut pause = FIRST_PAUSE;
        loop {
            if self.0.take(ttl).await? {
                return Ok(true);
            }
            let now = clock::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            let next = now + jittered(pause);
            time::sleep_until(deadline.map_or(next, |deadline| deadline.min(next))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Half of it to all of it, so that those who wait do not come in step.
fn jittered(pause: Duration) -> Duration {
    // The keys of each `RandomState` of a thread are those of the one before, plus one, and the
    // first are drawn from the operating system: so threads and processes differ, and SipHash
    // makes of keys that differ by one numbers that have nothing in common.
    let random = RandomState::new().build_hasher().finish();
    let [part, ..] = random.to_le_bytes();
    pause * (256 + u32::from(part)) / 512
}

impl Hold for Acquisition {
    fn renew(&self, ttl: Duration) -> Step<Result<bool, LockError>> {
        let entry = Arc::clone(&self.0);
        Step::later(async move { entry.renew(ttl).await })
    }

    fn release(&self) -> Step<Result<bool, LockError>> {
        let entry = Arc::clone(&self.0);
        Step::later(async move { entry.release().await })
    }
}
