//! A lock for each key, in the memory of this process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Once},
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

/// A table is not shrunk below this many places.
const FEW: usize = 64;

/// A lock for each key, in the memory of this process.
///
/// For one replica, and for tests: it logs a warning, once a process, that other replicas do not
/// see it. Whoever waits is served in the order of arrival. The table holds the keys that are held
/// or waited for, and nothing else.
///
/// The handle is cheap to clone; all clones are one lock.
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::lock::{DistributedLock, InProcessLock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = InProcessLock::new();
/// let ttl = Duration::from_secs(30);
/// let held = lock.try_acquire("report-2026-12", ttl, Duration::ZERO).await?;
/// assert!(held.is_some());
/// assert_eq!(lock.len(), 1);
/// drop(held);
/// assert!(lock.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct InProcessLock {
    table: Arc<Table>,
}

#[derive(Default)]
struct Table(Mutex<HashMap<Arc<str>, Queue>>);

impl InProcessLock {
    /// A lock that nobody holds at any key.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many keys are held or waited for. A guard that has lapsed counts until it is dropped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.0.lock().len()
    }

    /// Whether no key is held or waited for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl DistributedLock for InProcessLock {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        static SAID: Once = Once::new();
        local::warn_once(&SAID, "`InProcessLock`");
        local::acquire(&self.table, key, Arc::from(key), ttl, wait)
    }
}

impl Queues for Table {
    type Key = Arc<str>;

    fn with<T>(&self, key: &Arc<str>, change: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queues = self.0.lock();
        let queue = queues.entry(Arc::clone(key)).or_default();
        let changed = change(queue);
        // The last user removes it under the same lock under which the next one would enter it.
        if queue.is_idle() {
            queues.remove(key);
            if queues.capacity() > FEW && queues.len() < queues.capacity() / 8 {
                let room = queues.len() * 2;
                queues.shrink_to(room.max(FEW));
            }
        }
        changed
    }
}

impl fmt::Debug for InProcessLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessLock")
            .field("keys", &self.len())
            .finish_non_exhaustive()
    }
}
