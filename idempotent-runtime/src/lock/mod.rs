//! Mutual exclusion on a key, across replicas or within one process.
//!
//! A lock is asked for a key, for a time that bounds how long it can be held (`ttl`), and for a
//! time to wait for it. Who gets it holds a [`Guard`]; who does not is answered `None`; and a lock
//! that cannot be asked at all is an error. The last two are different cases: where another holds
//! the key there is somebody to wait for, where the lock faults there is nobody.
//!
//! ```
//! use std::time::Duration;
//! use idempotent_runtime::lock::{DistributedLock, InProcessLock};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lock = InProcessLock::new(); // with replicas: `RedisLock::connect("redis://..", "billing").await?`
//! let (ttl, wait) = (Duration::from_secs(30), Duration::from_millis(5));
//!
//! let guard = lock.try_acquire("invoice-run", ttl, wait).await?.expect("nobody holds it");
//! assert!(lock.try_acquire("invoice-run", ttl, wait).await?.is_none());
//! assert!(lock.try_acquire("another-key", ttl, wait).await?.is_some());
//!
//! assert!(guard.renew(ttl).await?);
//! // .. what only one may do at a time, then:
//! assert!(guard.release().await?, "held to the end");
//! assert!(lock.try_acquire("invoice-run", ttl, Duration::ZERO).await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! | lock | excludes | keys |
//! |---|---|---|
//! | `RedisLock` (feature `redis`) | all replicas on one Redis | exact |
//! | [`InProcessLock`] | this process | exact |
//! | [`StripedLock`] | this process | 256 stripes |
//!
//! # What it is not
//!
//! * Not a consensus protocol: one server decides, and what it forgets in a failover is free.
//! * Not fenced: a section that outruns its `ttl` is no longer exclusive. Its guard says so in a
//!   warning at the release; [renew](Guard::renew) it in time, or choose a longer `ttl`.
//! * Not reentrant: a holder that asks again for its own key is refused like anybody else.
//!
//! What must never happen twice needs more than a lock: a record of what was done, as a
//! [`Store`](crate::store::Store) keeps it, or a unique constraint.

#[cfg(feature = "redis")]
mod redis;

mod striped;

mod in_process;

mod local;

mod guard;

mod errand;

mod error;

use std::{sync::Arc, time::Duration};

#[cfg(feature = "redis")]
pub use self::redis::RedisLock;
pub use self::{
    error::{LockError, LockErrorKind},
    guard::{Guard, Hold},
    in_process::InProcessLock,
    striped::StripedLock,
};
pub use crate::step::{BoxFuture, Step};

/// Mutual exclusion on a key. See the [module](self).
pub trait DistributedLock: Send + Sync + 'static {
    /// Takes the lock at `key`, at most after `wait`: `None` when another has held it all the while.
    /// It is free again when its guard is released or dropped, and `ttl` after it was taken or
    /// [renewed](Guard::renew) at the latest. A `ttl` under a millisecond is one.
    ///
    /// A `wait` of zero is one attempt. A call that is dropped before it is answered leaves nothing
    /// locked, or what the server has carried out behind its back is free when `ttl` is over.
    ///
    /// # Errors
    ///
    /// When the lock itself faults. It says nothing about whether another holds the key.
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>>;

    /// Whether the lock can be used again, asked from time to time after it has failed. A lock
    /// behind a connection opens a fresh one for it, and keeps that in place of the old one. As
    /// provided it always agrees, as a lock in memory does, so that the next attempt finds out.
    ///
    /// # Errors
    ///
    /// When it cannot.
    fn probe(&self) -> Step<Result<(), LockError>> {
        Step::Now(Ok(()))
    }
}

impl<L: DistributedLock + ?Sized> DistributedLock for Arc<L> {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        (**self).try_acquire(key, ttl, wait)
    }

    fn probe(&self) -> Step<Result<(), LockError>> {
        (**self).probe()
    }
}
