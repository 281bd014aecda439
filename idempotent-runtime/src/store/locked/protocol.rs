//! The five steps, in terms of the cache and the lock.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Once, OnceLock},
    task::Poll,
    time::Duration,
};

use super::{cache::Cache, claims::Claims};
use crate::{
    key::StorageKey,
    lock::{DistributedLock, Guard, LockError, LockErrorKind, StripedLock},
    metrics::{self, Operation},
    record::{Record, Token},
    store::{
        Claim, ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome, StoreError, value,
    },
};

/// Some caches know no shorter expiry.
const SHORTEST_EXPIRY: Duration = Duration::from_millis(1);

/// What commands under way share with their store.
pub(super) struct Parts<C> {
    pub(super) cache: Arc<C>,
    /// Chosen with the first claim, if none was given.
    pub(super) lock: OnceLock<Arc<dyn DistributedLock>>,
    pub(super) claims: Claims,
}

/// What came of steps 1 to 3.
enum Attempted {
    /// The lock is held, and no record stands.
    Locked,
    Recorded(Arc<Record>),
    /// Another holds the lock.
    Refused,
}

type Outcome<T> = Result<T, StoreError>;

impl<C: Cache> Parts<C> {
    /// The record at a key, and who stored it.
    async fn look(&self, name: &str) -> Result<Option<(Token, Arc<Record>)>, StoreError> {
        let read = counted(Operation::Read, self.cache.get(name)).await;
        let bytes = read.map_err(|error| error.told_as("the cache could not be read"))?;
        let place = format_args!("{name} in the cache");
        let found = bytes
            .map(|bytes| value::decode(place, &bytes))
            .transpose()?;
        Ok(found.map(|(token, record)| (token, Arc::new(record))))
    }

    async fn write(
        &self,
        name: &str,
        token: Token,
        record: &Record,
        retention: Duration,
    ) -> Result<(), StoreError> {
        let expiry = retention.max(SHORTEST_EXPIRY);
        let set = self.cache.set(name, value::encode(token, record)?, expiry);
        let set = counted(Operation::Write, set).await;
        set.map_err(|error| error.told_as("the cache could not be written"))
    }

    /// Steps 1 to 3.
    async fn take(&self, key: &StorageKey, claim: Claim) -> Result<Attempted, StoreError> {
        let name = key.to_string();
        if let Some((_, record)) = self.look(&name).await? {
            return Ok(Attempted::Recorded(record));
        }
        // An earlier reply was lost.
        if self.prolong(key, claim).await? {
            return Ok(Attempted::Locked);
        }
        let Some(guard) = self.acquire(&name, claim.lease).await? else {
            return Ok(Attempted::Refused);
        };
        // From here on whatever ends this early drops the guard, which releases it.
        if let Some((_, record)) = self.look(&name).await? {
            return Ok(Attempted::Recorded(record));
        }
        self.claims.keep(key, claim, guard);
        Ok(Attempted::Locked)
    }

    /// One attempt: a store does not wait.
    async fn acquire(&self, name: &str, lease: Duration) -> Result<Option<Guard>, StoreError> {
        let lock = self.lock.get_or_init(process_local);
        let acquiring = lock.try_acquire(name, lease, Duration::ZERO);
        let acquired = counted(Operation::Lock, acquiring).await;
        acquired.map_err(|error| lock_fault("the lock could not be taken", error))
    }

    /// Prolongs the lock of a claim that is held here; whether it was. What has lapsed is forgotten.
    async fn prolong(&self, key: &StorageKey, claim: Claim) -> Result<bool, StoreError> {
        let Some(renewal) = self.claims.renew(key, claim.token, claim.lease) else {
            return Ok(false);
        };
        let renewed = counted(Operation::Lock, renewal).await;
        let renewed =
            renewed.map_err(|error| lock_fault("the lock could not be renewed", error))?;
        if renewed {
            self.claims.renewed(key, claim.token, claim.lease);
        } else {
            drop(self.claims.take(key, claim.token));
        }
        Ok(renewed)
    }

    pub(super) async fn claim(
        self: Arc<Self>,
        key: StorageKey,
        claim: Claim,
    ) -> Outcome<ClaimOutcome> {
        Ok(match self.take(&key, claim).await? {
            Attempted::Locked => ClaimOutcome::Claimed,
            Attempted::Recorded(record) => ClaimOutcome::Completed(record),
            Attempted::Refused => {
                // Of another replica's claim nothing is known but that it stands. As the same
                // request its duplicates wait; none is refused that should not be.
                let unknown = (claim.fingerprint, claim.lease);
                let (fingerprint, left) = self.claims.holder(&key).unwrap_or(unknown);
                ClaimOutcome::InProgress {
                    fingerprint,
                    lease_left: Some(left),
                }
            }
        })
    }

    pub(super) async fn renew(
        self: Arc<Self>,
        key: StorageKey,
        claim: Claim,
    ) -> Outcome<RenewOutcome> {
        if self.prolong(&key, claim).await? {
            return Ok(RenewOutcome::Renewed);
        }
        Ok(match self.take(&key, claim).await? {
            Attempted::Locked => RenewOutcome::Restored,
            Attempted::Recorded(record) => RenewOutcome::Completed(record),
            Attempted::Refused => RenewOutcome::Lost,
        })
    }

    /// Steps 4 and 5. The lock is held until the record stands, also when this is dropped before.
    pub(super) async fn complete(
        self: Arc<Self>,
        key: StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Outcome<CompleteOutcome> {
        let name = key.to_string();
        let outcome = match self.look(&name).await? {
            Some((own, _)) if own == token => CompleteOutcome::Stored,
            Some((_, standing)) => CompleteOutcome::Completed(standing),
            None => {
                let displaces = self.claims.has_another(&key, token);
                self.write(&name, token, &record, retention).await?;
                if displaces {
                    CompleteOutcome::Displaced
                } else {
                    CompleteOutcome::Stored
                }
            }
        };
        self.claims.wake(&key);
        // In the background: a record stands, so nobody waits for the lock.
        drop(self.claims.take(&key, token));
        Ok(outcome)
    }

    /// Asks both at once: they may share a connection, which is then replaced once.
    pub(super) async fn probe(self: Arc<Self>) -> Result<(), StoreError> {
        let mut of_lock = pin!(async {
            match self.lock.get() {
                Some(lock) => lock.probe().answer().await,
                None => Ok(()),
            }
        });
        let mut lock = None;
        let mut cache = pin!(self.cache.probe());
        let cache = poll_fn(|cx| {
            if lock.is_none()
                && let Poll::Ready(answer) = of_lock.as_mut().poll(cx)
            {
                lock = Some(answer);
            }
            cache.as_mut().poll(cx)
        });
        cache.await?;
        let lock = match lock {
            Some(answer) => answer,
            None => of_lock.await,
        };
        lock.map_err(|error| lock_fault("the lock is still down", error))
    }

    pub(super) async fn release(
        self: Arc<Self>,
        key: StorageKey,
        token: Token,
    ) -> Outcome<ReleaseOutcome> {
        // Dropped at any point, it is released in the background.
        let own = self.claims.take(&key, token);
        let found = self.look(&key.to_string()).await;
        let released = match own {
            Some(own) => counted(Operation::Lock, own.release()).await,
            None => Ok(false),
        };
        let released =
            released.map_err(|error| lock_fault("the lock could not be released", error));
        match (found, released) {
            (Ok(Some((_, record))), _) => Ok(ReleaseOutcome::Completed(record)),
            // What was asked for is done, whatever else could not be read.
            (Ok(None) | Err(_), Ok(true)) => Ok(ReleaseOutcome::Released),
            (Ok(None), Ok(false)) => Ok(ReleaseOutcome::NotHeld),
            (Ok(None), Err(error)) | (Err(error), _) => Err(error),
        }
    }
}

fn lock_fault(message: &'static str, error: LockError) -> StoreError {
    match error.kind() {
        LockErrorKind::Unavailable => StoreError::unavailable(message),
        LockErrorKind::Full => StoreError::full(message),
        LockErrorKind::Unreadable => StoreError::unreadable(message),
    }
    .because(error)
}

/// Counts what the cache or the lock has failed to do, also where nobody waited for its answer any
/// more.
async fn counted<T, E>(
    operation: Operation,
    command: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut asked = Asked(Some(operation));
    let answer = command.await?;
    asked.0 = None;
    Ok(answer)
}

/// Something that is not yet answered as it should be.
struct Asked(Option<Operation>);

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(operation) = self.0 {
            metrics::degraded(operation);
        }
    }
}

/// The lock of a store that was given none.
fn process_local() -> Arc<dyn DistributedLock> {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::warn!(
            "a `LockedStore` has neither a lock nor a cache that brings one, and locks within this process only: with several replicas, give it one that all of them see, such as `RedisLock`"
        );
    });
    Arc::new(StripedLock::new())
}
