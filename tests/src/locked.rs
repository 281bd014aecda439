//! A cache and a lock that fail when the test says so.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use idempotent_runtime::{
    lock::{BoxFuture, DistributedLock, Guard, LockError, Step},
    store::{Cache, StoreError},
};
use parking_lot::Mutex;
use tokio::{task, time::Instant};

/// How something answers.
#[derive(Debug, Clone, Default)]
pub struct Mood(Arc<(AtomicU8, AtomicUsize)>);

impl Mood {
    /// As it should.
    pub fn well(&self) {
        self.0.0.store(0, Ordering::SeqCst);
    }

    /// With an error.
    pub fn failing(&self) {
        self.0.0.store(1, Ordering::SeqCst);
    }

    /// Never.
    pub fn hanging(&self) {
        self.0.0.store(2, Ordering::SeqCst);
    }

    /// How often it was asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    /// Whether to answer.
    async fn answers(&self) -> bool {
        self.0.1.fetch_add(1, Ordering::SeqCst);
        // As over a network: not at once.
        task::yield_now().await;
        match self.0.0.load(Ordering::SeqCst) {
            0 => true,
            1 => false,
            _ => pending().await,
        }
    }
}

/// A cache in memory, on Tokio's clock. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct MapCache {
    entries: Arc<Mutex<HashMap<String, (Bytes, Instant)>>>,
    /// Of [`Cache::get`].
    pub reads: Mood,
    /// Of [`Cache::set`].
    pub writes: Mood,
}

impl MapCache {
    /// What stands at a key, whoever put it there.
    #[must_use]
    pub fn stands(&self, key: &str) -> Option<Bytes> {
        let entries = self.entries.lock();
        let entry = entries.get(key).filter(|(_, end)| *end > Instant::now());
        entry.map(|(value, _)| value.clone())
    }

    /// Puts something there.
    pub fn put(&self, key: &str, value: impl Into<Bytes>, expiry: Duration) {
        let entry = (value.into(), Instant::now() + expiry);
        self.entries.lock().insert(key.to_owned(), entry);
    }

    /// All keys.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.entries.lock().keys().cloned().collect()
    }
}

impl Cache for MapCache {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        if !self.reads.answers().await {
            return Err(StoreError::unavailable("made to fail"));
        }
        Ok(self.stands(key))
    }

    async fn set(&self, key: &str, value: Bytes, expiry: Duration) -> Result<(), StoreError> {
        if !self.writes.answers().await {
            return Err(StoreError::unavailable("made to fail"));
        }
        self.put(key, value, expiry);
        Ok(())
    }
}

/// A lock around another. Clones share everything.
#[derive(Debug, Clone)]
pub struct MoodyLock<L> {
    /// The lock within.
    pub lock: L,
    /// Of [`DistributedLock::try_acquire`].
    pub acquires: Mood,
    /// Of [`DistributedLock::probe`].
    pub probes: Mood,
}

impl<L> MoodyLock<L> {
    /// A lock that is well.
    pub fn new(lock: L) -> Self {
        Self {
            lock,
            acquires: Mood::default(),
            probes: Mood::default(),
        }
    }

    /// The moods of everything that it is asked.
    #[must_use]
    pub fn all(&self) -> [&Mood; 2] {
        [&self.acquires, &self.probes]
    }
}

impl<L: DistributedLock> DistributedLock for MoodyLock<L> {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        let mood = self.acquires.clone();
        let acquiring = self.lock.try_acquire(key, ttl, wait);
        Box::pin(async move {
            if !mood.answers().await {
                return Err(LockError::new("made to fail"));
            }
            acquiring.await
        })
    }

    fn probe(&self) -> Step<Result<(), LockError>> {
        let mood = self.probes.clone();
        Step::later(async move {
            if mood.answers().await {
                Ok(())
            } else {
                Err(LockError::new("made to fail"))
            }
        })
    }
}
