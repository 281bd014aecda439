//! What a cache must do to be made a store.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{error::StoreError, lock::DistributedLock};

/// Bytes by key, each with an expiry: what a [`LockedStore`](super::LockedStore) keeps records in.
///
/// Two methods are enough; write them as `async fn`.
///
/// The cache must not drop an entry before its expiry to make room (`maxmemory-policy noeviction`
/// in Redis): the retry of a request whose record is gone runs again.
pub trait Cache: Send + Sync + 'static {
    /// What stands at `key`, byte for byte as it was set; `None` where nothing does, or where its
    /// expiry is over.
    ///
    /// # Errors
    ///
    /// [Unavailable](crate::store::StoreErrorKind::Unavailable) when the cache cannot be read,
    /// [unreadable](crate::store::StoreErrorKind::Unreadable) when what stands there is no bytes.
    /// An error is not an empty key.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// Sets what stands at `key`, whatever stood there, until `expiry` from now: a millisecond at
    /// least, and up to a week with the bounds of [`Settings`](crate::Settings).
    ///
    /// # Errors
    ///
    /// When the cache cannot be written. It says nothing about whether it was.
    fn set(
        &self,
        key: &str,
        value: Bytes,
        expiry: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The lock that belongs to this cache: one that all replicas see which see the cache. As
    /// provided there is none.
    fn lock(&self) -> Option<Arc<dyn DistributedLock>> {
        None
    }

    /// Whether the cache can be used again, as in [`Store::probe`](crate::store::Store::probe). As
    /// provided it always agrees, so that the next command finds out.
    ///
    /// # Errors
    ///
    /// When it cannot.
    fn probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }
}
