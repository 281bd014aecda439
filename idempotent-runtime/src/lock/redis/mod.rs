//! A lock that all replicas see.

mod acquisition;

mod entry;

mod answer;

use std::{fmt, time::Duration};

use redis::aio::ConnectionLike;

use self::acquisition::Acquisition;
use super::{DistributedLock, error::LockError, guard::Guard};
use crate::{
    connection::{Connection, Namespace, Server},
    error::Error,
    step::{BoxFuture, Step},
};

/// A lock that all replicas see, in Redis 7 or later (feature `redis`).
///
/// It is the key `<namespace>:lock:<key>` with its owner as value and its `ttl` as time to live,
/// both set by one command, so that no lock is ever left without an end. The server's clock decides
/// when it is over. Whoever waits asks again every 50 ms at most; there is no order among replicas.
///
/// A command that is not answered within a second is an error, and the connection is replaced.
/// Whatever it has left behind is released as soon as the server can be reached, or ends with its
/// `ttl`.
///
/// The user needs the commands `SET`, `GET`, `DEL`, `PEXPIRE`, `EVALSHA` and `EVAL` on `~<namespace>:lock:*`,
/// besides `PING`, `ROLE`, `INFO`, `CLIENT INFO` and `CLIENT KILL` for the connection.
///
/// ```no_run
/// use std::time::Duration;
/// use idempotent_runtime::lock::{DistributedLock, RedisLock};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = RedisLock::connect("redis://127.0.0.1", "billing").await?;
/// match lock.try_acquire("invoice-run", Duration::from_secs(30), Duration::from_secs(5)).await? {
///     Some(guard) => {
///         // .. what one replica may do at a time, then:
///         guard.release().await?;
///     }
///     None => println!("another replica is at it"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisLock {
    connection: Connection,
    namespace: Namespace,
}

impl RedisLock {
    /// Connects to one server: `redis://[user:password@]host[:port][/database]`, `rediss://` for
    /// TLS, `unix:///path`.
    ///
    /// The `namespace` separates services on one server: 1 to 64 characters of printable ASCII
    /// without spaces and braces. Replicas of a service share it.
    ///
    /// A server that cannot be reached is no error: a warning is logged, and every attempt to take
    /// the lock fails until it can.
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

    /// Connects to the master that sentinels at these URLs name. What a failover forgets is free.
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
        Ok(Self::on(connection, namespace))
    }

    /// A lock on a connection that others use too.
    pub(crate) fn on(connection: Connection, namespace: Namespace) -> Self {
        Self {
            connection,
            namespace,
        }
    }

    fn stored(&self, key: &str) -> String {
        format!("{}:lock:{key}", self.namespace.as_str())
    }
}

impl DistributedLock for RedisLock {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        let acquisition = Acquisition::new(self.connection.clone(), self.stored(key));
        let key: Box<str> = key.into();
        Box::pin(async move {
            let held = acquisition.acquire(ttl, wait).await?;
            Ok(held.then(|| Guard::new(key, ttl, acquisition)))
        })
    }

    fn probe(&self) -> Step<Result<(), LockError>> {
        let connection = self.connection.clone();
        Step::later(async move {
            let probed = connection.probe().await;
            probed.map_err(|error| LockError::new("Redis failed as a lock").because(error))
        })
    }
}

impl fmt::Debug for RedisLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLock")
            .field("connection", &self.connection)
            .field("namespace", &self.namespace.as_str())
            .finish()
    }
}
