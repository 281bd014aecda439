//! Claims and records in Redis, for replicas that share one.

mod command;
mod watch;

mod value;

mod key;

use std::{fmt, sync::Arc, time::Duration};

use redis::aio::ConnectionLike;

use self::watch::Watches;
use crate::{
    connection::{Connection, Namespace, Server},
    error::{Error, StoreError},
    key::StorageKey,
    record::{Record, Token},
    store::{
        BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step,
        Store,
    },
};

/// Claims and records in Redis, or Valkey, for replicas that share it: one server, a master that
/// Sentinel watches over, or a cluster.
///
/// A first request costs two round trips, a replay one. Duplicates that wait for a run in another
/// replica are woken by the server. Clones share one connection.
///
/// ```no_run
/// use idempotent_runtime::{Caller, IdempotencyRuntime, RedisStore};
///
/// # async fn start() -> Result<(), idempotent_runtime::Error> {
/// let store = RedisStore::connect("redis://cache.internal:6379", "orders-api").await?;
/// IdempotencyRuntime::builder()
///     .caller(Caller::subject().or(Caller::peer()))
///     .store(store)
///     .build()?
///     .install()?;
/// # Ok(())
/// # }
/// ```
///
/// # The server
///
/// Version 7.0 or later: the first in which `SET` takes `NX` and `GET` together
/// ([redis.io/commands/set](https://redis.io/docs/latest/commands/set/)). Valkey is one of them.
///
/// * **Memory.** Set `maxmemory-policy noeviction`. Under any other a full server forgets claims
///   and records, and retries run a second time; that is warned of at the start. A full server that
///   evicts nothing goes on replaying, and new keys are refused with 503 in every mode.
/// * **Persistence and failover.** Redis acknowledges a write before a replica or the disk has it. A
///   claim or a record that is lost in a crash or a failover can run again. `appendonly yes` with
///   `appendfsync always`, and `min-replicas-to-write`, narrow that down and do not close it; where
///   it matters, keep the record in the database of the effect.
/// * **Leases** are counted by the server's clock. A server that hangs for longer than a lease lets it
///   pass.
///
/// # The connection
///
/// It is opened when it is first wanted, so a service starts without its server, and says so. It
/// comes back by itself after a crash; one on which nothing arrives any more is replaced by the
/// [probe](Store::probe) that follows a failure. The server is then asked to close the old one, so
/// that no command that was given up on it is carried out after a later one.
///
/// * **Sentinel.** All sentinels are asked at once, and the server that they name must agree that it
///   is the master. A demoted one is left at the next command.
/// * **Cluster.** All that belongs to a request is in one slot.
/// * **TLS.** `rediss://` and the feature `redis-rustls`.
///
/// # What is stored
///
/// One key a request, `<namespace>:{<64 hexadecimal digits>}`, with the storage key of the log lines in
/// braces; and beside it for an instant, ten seconds at most, `<key>:<token>`. Every key ends: a
/// claim with its lease, a record with its retention. `redis-cli GET` shows a record as a line of
/// who made it and for which request, a line of JSON with status and headers, and the body as it is.
/// A value that this version cannot read is never overwritten; its requests are refused with 503.
///
/// # Rights
///
/// For a user who may do only what is needed
/// ([ACL](https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/)), here in
/// the namespace `orders-api`:
///
/// ```text
/// ACL SETUSER orders on >secret resetkeys ~orders-api:* resetchannels -@all
///   +ping +set +get +getrange +exists +pttl +pexpire +rename +del +unlink +evalsha +eval
/// ```
///
/// And with `+info +role +client|info +client|kill +client|tracking` (from 7.2 `+client|setinfo`) its
/// version and memory policy are checked, a demoted master is left sooner, old connections are
/// closed and waiters are woken; without, those poll. The commands are `SET NX GET` to claim; a
/// script to complete, and above 2 KiB `SET` before it, so that no large body goes through the
/// script; scripts to renew and release, and to look at another's claim; `CLIENT TRACKING` and
/// `GETRANGE` to wait.
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
    /// It must come back by itself when it breaks, or goes silent. Waiters poll.
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
        // Each command finds what it did itself before, by its token.
        let connection = Connection::new(server).repeatable();
        connection.connect().await?;
        Ok(Self {
            watches: Watches::new(connection.clone()),
            connection,
            namespace,
        })
    }

    /// Where it is stored, and the way there.
    fn at(&self, key: &StorageKey) -> (Connection, String) {
        (self.connection.clone(), key::stored(&self.namespace, key))
    }
}

impl Store for RedisStore {
    fn level(&self) -> Level {
        Level::Leased
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(async move { command::claim(&connection, &key, &claim).await })
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        let (connection, key) = self.at(key);
        Step::later(async move { command::renew(&connection, &key, &claim).await })
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
        self.watches.watch(key::stored(&self.namespace, key))
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
