//! A lock that all replicas see.

use std::{
    error::Error as StdError,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use redis::{Cmd, Value, aio::ConnectionLike};
use tokio::{runtime::Handle, time};

use super::{
    DistributedLock,
    error::LockError,
    guard::{Guard, Hold},
};
use crate::{
    clock,
    connection::{Connection, Fault, Namespace, Server, millis},
    error::{Error, StoreErrorKind},
    record::Token,
    step::{BoxFuture, Step},
};

/// How long a command may take. Then the connection is replaced, and the lock faults.
const ANSWER: Duration = Duration::from_secs(1);
/// The first pause between two attempts of one that waits; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Frees the lock of one owner (redis.io/docs/latest/commands/set, "Patterns").
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
/// Prolongs the lock of one owner.
const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

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
/// The user needs the commands `SET`, `GET`, `DEL`, `PEXPIRE` and `EVAL` on `~<namespace>:lock:*`,
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
}

impl DistributedLock for RedisLock {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> BoxFuture<Result<Option<Guard>, LockError>> {
        let place = Place(Arc::new(Owned {
            connection: self.connection.clone(),
            stored: format!("{}:lock:{key}", self.namespace.as_str()),
            owner: format!("{:032x}", u128::from_be_bytes(*Token::unique().as_bytes())),
        }));
        let key: Box<str> = key.into();
        Box::pin(async move {
            let held = place.acquire(ttl, wait).await?;
            Ok(held.then(|| Guard::new(key, ttl, place)))
        })
    }
}

/// One acquisition of one key.
struct Place(Arc<Owned>);

struct Owned {
    connection: Connection,
    /// The key in Redis.
    stored: String,
    /// The value there.
    owner: String,
}

impl Place {
    async fn acquire(&self, ttl: Duration, wait: Duration) -> Result<bool, LockError> {
        let deadline = clock::now().checked_add(wait);
        let mut pause = FIRST_PAUSE;
        loop {
            if self.0.attempt(ttl).await? {
                return Ok(true);
            }
            let now = clock::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            let next = now + jittered(pause);
            time::sleep_until(deadline.map_or(next, |deadline| deadline.min(next))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Half of it to all of it, so that those who wait do not come in step.
fn jittered(pause: Duration) -> Duration {
    // The standard library seeds each one from the operating system, and differently.
    let random = RandomState::new().build_hasher().finish();
    let [part, ..] = random.to_le_bytes();
    pause * (256 + u32::from(part)) / 512
}

/// Why a command has no answer.
enum Unanswered {
    Fault(Fault),
    Late,
}

impl Owned {
    /// One attempt. If it ends in any other way than with an answer, a release is sent behind it.
    async fn attempt(self: &Arc<Self>, ttl: Duration) -> Result<bool, LockError> {
        let mut behind = Behind(Some(Arc::clone(self)));
        let mut set = Cmd::new();
        set.arg("SET").arg(&self.stored).arg(&self.owner);
        // With `GET` it says who holds it: this very attempt, if a cluster's client has sent it a
        // second time.
        set.arg("NX").arg("GET").arg("PX").arg(millis(ttl));
        let mut answer = self.send(&set).await;
        if let Err(Unanswered::Fault(full)) = &answer
            && full.is_full()
        {
            answer = self.holder(answer).await;
        }
        let held = match answer {
            Ok(Value::Nil) => true,
            Ok(Value::BulkString(owner)) if owner == self.owner.as_bytes() => {
                let renewed = self.renewed(ttl).await;
                renewed.map_err(|unanswered| self.error(unanswered))?
            }
            Ok(_) => false,
            Err(unanswered) => {
                if let Unanswered::Fault(Fault::Opening(_)) = unanswered {
                    // It was never sent.
                    behind.0 = None;
                }
                return Err(self.error(unanswered));
            }
        };
        behind.0 = None;
        Ok(held)
    }

    /// A full server refuses to take the lock, but can say whether another holds it. If not, it has
    /// `failed`.
    async fn holder(&self, failed: Result<Value, Unanswered>) -> Result<Value, Unanswered> {
        let mut get = Cmd::new();
        get.arg("GET").arg(&self.stored);
        match self.send(&get).await {
            Ok(Value::Nil) => failed,
            read => read,
        }
    }

    async fn renewed(&self, ttl: Duration) -> Result<bool, Unanswered> {
        self.compared(RENEW, &[&self.owner, &millis(ttl).to_string()])
            .await
    }

    async fn released(&self) -> Result<bool, Unanswered> {
        self.compared(RELEASE, &[&self.owner]).await
    }

    /// Runs a script that does something where the value is the owner's; whether it was.
    async fn compared(&self, script: &str, arguments: &[&str]) -> Result<bool, Unanswered> {
        let mut call = Cmd::new();
        call.arg("EVAL").arg(script).arg(1).arg(&self.stored);
        call.arg(arguments);
        Ok(self.send(&call).await? == Value::Int(1))
    }

    async fn send(&self, command: &Cmd) -> Result<Value, Unanswered> {
        let sent = self.connection.send(command);
        if let Ok(answer) = time::timeout(ANSWER, sent).await {
            return answer.map_err(Unanswered::Fault);
        }
        // The connection may lead nowhere, without saying so.
        let connection = self.connection.clone();
        let probing = async move { drop(connection.probe().await) };
        drop(Handle::current().spawn(probing));
        Err(Unanswered::Late)
    }

    fn error(&self, unanswered: Unanswered) -> LockError {
        match unanswered {
            Unanswered::Fault(fault) => {
                let error = fault.into_error(&self.stored);
                match error.kind() {
                    StoreErrorKind::Unavailable => LockError::new("Redis failed as a lock"),
                    StoreErrorKind::Full => LockError::full("Redis has no room for a lock"),
                    StoreErrorKind::Unreadable => {
                        LockError::unreadable("what stands in Redis is no lock")
                    }
                }
                .because(error)
            }
            Unanswered::Late => LockError::new(format!(
                "Redis did not answer for the lock at {} within {ANSWER:?}",
                self.stored
            )),
        }
    }

    /// Releases what may have been taken, over a fresh connection if the present one fails.
    async fn release_behind(&self) {
        if self.released().await.is_ok() {
            return;
        }
        let probed = self.connection.probe().await;
        if let Err(unanswered) = self.released().await {
            let error = self.error(unanswered);
            tracing::debug!(
                key = self.stored,
                reachable = probed.is_ok(),
                error = &error as &(dyn StdError + 'static),
                "what may be locked could not be released: it is free when its `ttl` is over"
            );
        }
    }
}

/// Releases what may be locked without anybody knowing, in the background. By owner, so it never
/// frees another's; after what may have locked it, since a connection keeps the order of commands,
/// and is closed at the server before the next one is used.
struct Behind(Option<Arc<Owned>>);

impl Drop for Behind {
    fn drop(&mut self) {
        if let Some(owned) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(async move { owned.release_behind().await }));
        }
    }
}

impl Hold for Place {
    fn renew(&self, ttl: Duration) -> Step<Result<bool, LockError>> {
        let owned = Arc::clone(&self.0);
        Step::later(async move {
            let renewed = owned.renewed(ttl).await;
            renewed.map_err(|unanswered| owned.error(unanswered))
        })
    }

    fn release(&self) -> Step<Result<bool, LockError>> {
        let owned = Arc::clone(&self.0);
        Step::later(async move {
            let mut behind = Behind(Some(Arc::clone(&owned)));
            let released = owned.released().await;
            if released.is_ok() {
                behind.0 = None;
            }
            released.map_err(|unanswered| owned.error(unanswered))
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
