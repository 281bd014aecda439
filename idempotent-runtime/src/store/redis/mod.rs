//! Claims and records in Redis, for replicas that share one.

mod command;
mod watch;

mod script;

mod value;

mod key;

mod hex;

use std::{fmt, sync::Arc, time::Duration};

use redis::aio::ConnectionLike;

use self::{key::Namespace, watch::Watches};
use crate::{
    connection::{Connection, Server},
    error::{Error, StoreError},
    key::StorageKey,
    record::{Record, Token},
    store::{
        BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step,
        Store,
    },
};

/// A [leased](Level::Leased) store in Redis. See the [module page](self).
#[derive(Clone)]
pub struct RedisStore {
    connection: Connection,
    namespace: Namespace,
    watches: Watches,
}

impl RedisStore {
    /// Connects to one server: `redis://[user:password@]host[:port][/database]`, `rediss://` for
    /// TLS, `unix:///path`.
    ///
    /// The `namespace` separates services on one server: 1 to 64 characters of printable ASCII
    /// without spaces and braces. Replicas of a service share it.
    ///
    /// A server that cannot be reached is no error: a warning is logged, and the service starts
    /// without it.
    ///
    /// # Errors
    ///
    /// [`Configuration`](crate::ErrorKind::Configuration): the URL or the namespace is malformed.
    /// [`Store`](crate::ErrorKind::Store): the server is older than version 7.0, or refuses the
    /// credentials.
    pub async fn connect(url: &str, namespace: &str) -> Result<Self, Error> {
        Self::open(Server::one(url)?, namespace).await
    }

    /// Connects to a cluster, of which these URLs name some nodes. Waiters poll.
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

    /// Connects to the master that sentinels at these URLs name. User, password and database in the
    /// URLs are the master's; sentinels that ask for credentials are given the same.
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

    /// Uses a connection that is open already, such as a `redis::aio::ConnectionManager`.
    ///
    /// It must come back by itself when it breaks, and be given up by its own timeouts. Waiters poll.
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
            watches: Watches::new(connection.clone()),
            connection,
            namespace,
        })
    }

    /// Where it is stored, and the way there.
    fn at(&self, key: &StorageKey) -> (Connection, String) {
        (self.connection.clone(), self.namespace.key(key))
    }
}

impl Store for RedisStore {
    fn level(&self) -> Level {
        Level::Leased
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(async move { command::claim(&connection, &key, claim).await })
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(async move { command::renew(&connection, &key, claim).await })
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(
            async move { command::complete(&connection, &key, token, &record, retention).await },
        )
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(async move { command::release(&connection, &key, token).await })
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        self.watches.watch(self.namespace.key(key))
    }

    fn probe(&self) -> Step<Result<(), StoreError>> {
        let connection = self.connection.clone();
        Step::later(async move { connection.probe().await })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
