//! A cache in Redis, which brings its lock.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use redis::{Cmd, Value, aio::ConnectionLike};

use super::cache::Cache;
use crate::{
    connection::{Connection, Namespace, Server, millis},
    error::{Error, StoreError},
    lock::{DistributedLock, RedisLock},
};

/// A [`Cache`] in Redis 7 or later (feature `redis`), with a [`RedisLock`] on the same connection.
///
/// Records are at `<namespace>:cache:<key>`, locks at `<namespace>:lock:<key>`; `redis-cli GET`
/// shows both. A first request takes six round trips, the last of them in the background, and a
/// replay one: [`RedisStore`](crate::store::RedisStore) does with two, and is fenced. This is for a
/// service that wants a lock and a cache as they were.
///
/// ```no_run
/// use idempotent_runtime::{Caller, IdempotencyRuntime, store::{LockedStore, RedisCache}};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = RedisCache::connect("redis://127.0.0.1", "orders-api").await?;
/// let runtime = IdempotencyRuntime::builder()
///     .caller(Caller::subject())
///     .store(LockedStore::new(cache))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisCache {
    connection: Connection,
    namespace: Namespace,
}

impl RedisCache {
    /// Connects to one server, as [`RedisLock::connect`].
    ///
    /// # Errors
    ///
    /// [`Configuration`](crate::ErrorKind::Configuration): the URL or the namespace is malformed.
    /// [`Store`](crate::ErrorKind::Store): the server is older than version 7.0, or refuses the
    /// credentials.
    pub async fn connect(url: &str, namespace: &str) -> Result<Self, Error> {
        Self::open(Server::one(url)?, namespace).await
    }

    /// Connects to a cluster, of which these URLs name some nodes.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_cluster<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        namespace: &str,
    ) -> Result<Self, Error> {
        Self::open(Server::cluster(urls)?, namespace).await
    }

    /// Connects to the master that sentinels at these URLs name.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_sentinel<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        master: &str,
        namespace: &str,
    ) -> Result<Self, Error> {
        Self::open(Server::watched(urls, master)?, namespace).await
    }

    /// Uses a connection that is open already, and comes back by itself when it breaks.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_connection<C>(connection: C, namespace: &str) -> Result<Self, Error>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Self::open(Server::Given(Box::new(connection)), namespace).await
    }

    async fn open(server: Server, namespace: &str) -> Result<Self, Error> {
        let namespace = Namespace::new(namespace)?;
        let connection = Connection::new(server);
        connection.connect().await?;
        Ok(Self {
            connection,
            namespace,
        })
    }

    fn stored(&self, key: &str) -> String {
        format!("{}:cache:{key}", self.namespace.as_str())
    }
}

impl Cache for RedisCache {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let stored = self.stored(key);
        let mut get = Cmd::new();
        get.arg("GET").arg(&stored);
        // A read may as well be carried out twice. It is what a claim begins with, so it is what
        // finds out that the connection broke while it was idle.
        let answer = send(&self.connection.clone().repeatable(), &stored, &get).await?;
        if let Value::BulkString(value) = answer {
            return Ok(Some(value.into()));
        }
        if answer == Value::Nil {
            return Ok(None);
        }
        Err(StoreError::unreadable(format!(
            "{stored} in Redis holds what no cache has put there"
        )))
    }

    async fn set(&self, key: &str, value: Bytes, expiry: Duration) -> Result<(), StoreError> {
        let stored = self.stored(key);
        let mut set = Cmd::new();
        set.arg("SET").arg(&stored).arg(&*value);
        set.arg("PX").arg(millis(expiry));
        send(&self.connection, &stored, &set).await.map(drop)
    }

    fn lock(&self) -> Option<Arc<dyn DistributedLock>> {
        let lock = RedisLock::on(self.connection.clone(), self.namespace.clone());
        Some(Arc::new(lock))
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.connection.probe().await
    }
}

async fn send(connection: &Connection, stored: &str, command: &Cmd) -> Result<Value, StoreError> {
    let answer = connection.send(command).await;
    answer.map_err(|fault| fault.into_error(stored))
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache")
            .field("connection", &self.connection)
            .field("namespace", &self.namespace.as_str())
            .finish()
    }
}
