//! A cache and a lock, made a store.

#[cfg(feature = "redis")]
mod redis;

mod protocol;

mod cache;

mod claims;

use std::{
    fmt,
    sync::{Arc, Once, OnceLock},
    time::Duration,
};

pub use self::cache::Cache;
#[cfg(feature = "redis")]
pub use self::redis::RedisCache;
use self::{claims::Claims, protocol::Parts};
use super::{
    BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step,
    Store, StoreError,
};
use crate::{
    key::StorageKey,
    lock::DistributedLock,
    metrics::{self, Operation},
    record::{Record, Token},
};

/// Your [`Cache`] and a [lock](crate::lock), made a store in five steps.
///
/// 1. Look into the cache. A record there is the answer.
/// 2. Take the lock of the key. Where another holds it, the request waits, and begins again.
/// 3. Look again: whoever held the lock may have finished meanwhile.
/// 4. The handler runs, and its response is set, with the retention as its expiry.
/// 5. Give the lock up.
///
/// So the lock spans the run and the record of it, and is renewed while the handler runs. It is the
/// one [given](Self::lock), or [the cache's own](Cache::lock), or with neither a
/// [`StripedLock`](crate::lock::StripedLock), and then a warning says once that other replicas do not
/// see it. Keys that share a stripe wait for each other there.
///
/// # What it guarantees
///
/// Its [level](Level) is *locked*: one run as long as the lock holds. A cache can compare nothing
/// when it writes, so two runs of one key, one of which has outlived its lock, may both record;
/// the first record mostly stays, but that is no atomic step. Where that matters, use a store whose
/// every write is fenced. That another replica's run has another body is not known before it ends;
/// its duplicates wait. A lock that has lapsed is gone, so [`OnLostRun::Unknown`](crate::OnLostRun::Unknown)
/// has no effect, which a warning says once.
///
/// # When the cache or the lock fails
///
/// Either makes the command fail as [unavailable](super::StoreErrorKind::Unavailable), so that the
/// handler runs without the guarantee, or the request is refused: see
/// [`OnStoreFailure`](crate::OnStoreFailure). The message says which it was, and
/// `idempotency.degraded` counts it as `read`, `write` or `lock`, besides the command that the
/// engine counts. A lock that another holds is no failure. Bytes that are no record are
/// [unreadable](super::StoreErrorKind::Unreadable), and never overwritten. Where the cache or the
/// lock has no room the command fails as [full](super::StoreErrorKind::Full), and new keys are refused
/// in every mode. The [probe](Store::probe) asks both.
///
/// # Examples
///
/// ```
/// use std::{collections::HashMap, sync::{Arc, Mutex}, time::{Duration, Instant}};
/// use axum::{Extension, Router, body::Body, http::Request, routing::post};
/// use bytes::Bytes;
/// use idempotent_runtime::{
///     Caller, IdempotencyRuntime, idempotent,
///     lock::{DistributedLock, InProcessLock},
///     store::{Cache, LockedStore, StoreError},
/// };
/// use tower::ServiceExt;
///
/// /// The cache that the service has already.
/// #[derive(Default)]
/// struct MyCache {
///     entries: Mutex<HashMap<String, (Bytes, Instant)>>,
/// }
///
/// impl Cache for MyCache {
///     async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
///         let entries = self.entries.lock().map_err(|_| StoreError::unavailable("poisoned"))?;
///         let entry = entries.get(key).filter(|(_, expires)| *expires > Instant::now());
///         Ok(entry.map(|(value, _)| value.clone()))
///     }
///
///     async fn set(&self, key: &str, value: Bytes, expiry: Duration) -> Result<(), StoreError> {
///         let mut entries = self.entries.lock().map_err(|_| StoreError::unavailable("poisoned"))?;
///         entries.insert(key.to_owned(), (value, Instant::now() + expiry));
///         Ok(())
///     }
///
///     // One that all replicas see, if there are several.
///     fn lock(&self) -> Option<Arc<dyn DistributedLock>> {
///         Some(Arc::new(InProcessLock::new()))
///     }
/// }
///
/// #[idempotent]
/// async fn shout(text: String) -> String {
///     text.to_uppercase()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = IdempotencyRuntime::builder()
///     .caller(Caller::shared())
///     .store(LockedStore::new(MyCache::default()))
///     .build()?;
/// let app = Router::new().route("/shout", post(shout)).layer(Extension(runtime));
///
/// let attempt = || Request::post("/shout").header("Idempotency-Key", "k").body(Body::from("tea"));
/// let first = app.clone().oneshot(attempt()?).await?;
/// let again = app.oneshot(attempt()?).await?;
/// assert!(!first.headers().contains_key("x-idempotent-replay"));
/// assert_eq!(again.headers()["x-idempotent-replay"], "true");
/// # Ok(())
/// # }
/// ```
pub struct LockedStore<C>(Arc<Parts<C>>);

impl<C: Cache> LockedStore<C> {
    /// A store on this cache, with the lock that the cache brings.
    pub fn new(cache: C) -> Self {
        metrics::begin_at_zero(&[Operation::Read, Operation::Write, Operation::Lock]);
        Self::with(cache.lock(), Arc::new(cache))
    }

    /// The lock, in place of the cache's own. It must be one that all replicas see which see the
    /// cache.
    ///
    /// ```
    /// use idempotent_runtime::{lock::InProcessLock, store::{Cache, LockedStore}};
    ///
    /// fn on_one_machine<C: Cache>(cache: C) -> LockedStore<C> {
    ///     LockedStore::new(cache).lock(InProcessLock::new())
    /// }
    /// ```
    #[must_use]
    pub fn lock(self, lock: impl DistributedLock) -> Self {
        Self::with(Some(Arc::new(lock)), Arc::clone(&self.0.cache))
    }

    fn with(lock: Option<Arc<dyn DistributedLock>>, cache: Arc<C>) -> Self {
        Self(Arc::new(Parts {
            cache,
            lock: lock.map(OnceLock::from).unwrap_or_default(),
            claims: Claims::default(),
        }))
    }

    /// The cache within.
    #[must_use]
    pub fn cache(&self) -> &C {
        &self.0.cache
    }

    /// How many claims of this process it holds: requests that run.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.0.claims.len()
    }

    fn send<T, F>(&self, command: impl FnOnce(Arc<Parts<C>>) -> F) -> Step<Result<T, StoreError>>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Step::later(command(Arc::clone(&self.0)))
    }
}

impl<C: Cache> Store for LockedStore<C> {
    fn level(&self) -> Level {
        Level::Locked
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        if !claim.kept.is_zero() {
            warn_of_kept_claims();
        }
        self.send(|parts| parts.claim(*key, claim))
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        self.send(|parts| parts.renew(*key, claim))
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        self.send(|parts| parts.complete(*key, token, record, retention))
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        self.send(|parts| parts.release(*key, token))
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        self.0.claims.watch(key)
    }

    fn probe(&self) -> Step<Result<(), StoreError>> {
        self.send(Parts::probe)
    }
}

/// Says once a process what this level cannot do, and a handler counts on.
fn warn_of_kept_claims() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::warn!(
            "`on_lost_run = \"unknown\"` has no effect in a `LockedStore`: a lock that has lapsed is gone, so a retry whose first attempt was lost runs again; use a store that keeps the claim, such as `RedisStore`, or leave the option out"
        );
    });
}

impl<C> fmt::Debug for LockedStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedStore")
            .field("in_progress", &self.0.claims.len())
            .finish_non_exhaustive()
    }
}
