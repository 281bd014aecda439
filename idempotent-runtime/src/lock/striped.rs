//! A fixed number of locks, shared by all keys.

use std::{
    array, fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    DistributedLock,
    error::LockError,
    guard::Guard,
    local::{self, Queue, Queues},
};
use crate::step::BoxFuture;

/// How many locks there are.
const STRIPES: usize = 256;

/// 256 locks in the memory of this process, shared by all keys.
///
/// The same key always has the same stripe; so have others, and two keys of one stripe exclude each
/// other although they have nothing to do with each other. So a holder that asks for a second key
/// may meet itself: it is answered `None` after its `wait`, like everybody else. A section that
/// calls its own service, and so needs a second lock, is better off with
/// [`InProcessLock`](super::InProcessLock), which knows keys apart.
///
/// Its memory is fixed, whatever keys clients send. Which keys share a stripe differs from lock to
/// lock, so that no client can choose keys that do.
///
/// The handle is cheap to clone; all clones are one lock.
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::lock::{DistributedLock, StripedLock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = StripedLock::new();
/// let ttl = Duration::from_secs(30);
/// let held = lock.try_acquire("order-1", ttl, Duration::ZERO).await?;
/// assert!(held.is_some());
/// assert!(lock.try_acquire("order-1", ttl, Duration::ZERO).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StripedLock {
    stripes: Arc<Stripes>,
    hasher: RandomState,
}

struct Stripes([Mutex<Queue>; STRIPES]);

impl StripedLock {
    /// 256 stripes that nobody holds.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stripes: Arc::new(Stripes(array::from_fn(|_| Mutex::default()))),
            hasher: RandomState::new(),
        }
    }

    fn stripe(&self, key: &str) -> u8 {
        let [stripe, ..] = self.hasher.hash_one(key).to_le_bytes();
        stripe
    }
}

impl Default for StripedLock {
    fn default() -> Self {
        Self::new()
    }
}

impl DistributedLock for StripedLock {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        local::acquire(&self.stripes, key, self.stripe(key), ttl, wait)
    }
}

impl Queues for Stripes {
    type Key = u8;

    fn with<T>(&self, stripe: &u8, change: impl FnOnce(&mut Queue) -> T) -> T {
        #[expect(
            clippy::indexing_slicing,
            reason = "there is a stripe for each value of a byte"
        )]
        let stripe = &self.0[usize::from(*stripe)];
        change(&mut stripe.lock())
    }
}

impl fmt::Debug for StripedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedLock").finish_non_exhaustive()
    }
}
