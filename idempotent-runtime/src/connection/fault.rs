//! What can go wrong between here and the server, and what it means for a store.

use std::{error::Error as StdError, io, sync::Arc};

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::StoreError;

/// Why no connection could be opened.
#[derive(Debug, Clone)]
pub(crate) enum Opening {
    /// The server cannot be reached now.
    Unreachable(String),
    /// The server can be reached, and time will not help: its version, the credentials.
    Unusable(String),
}

impl Opening {
    pub(super) fn given_up() -> Self {
        Self::Unreachable("the task that opened the connection has ended".to_owned())
    }

    pub(super) fn too_late(after: std::time::Duration) -> Self {
        Self::Unreachable(format!("no answer within {after:?}"))
    }
}

impl From<RedisError> for Opening {
    fn from(error: RedisError) -> Self {
        let refused = matches!(
            error.code(),
            Some("NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED")
        );
        let kind = error.kind();
        if refused
            || kind == ErrorKind::AuthenticationFailed
            || kind == ErrorKind::InvalidClientConfig
            || is_distrust(&error)
        {
            Self::Unusable(error.to_string())
        } else {
            Self::Unreachable(error.to_string())
        }
    }
}

/// A TLS handshake that one side has refused, such as for its certificate.
fn is_distrust(error: &RedisError) -> bool {
    type Source = Arc<dyn StdError + Send + Sync>;
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<Source>());
    let source = source.and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::InvalidData)
}

/// Why a command was not answered as it should have been.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no connection to send it on.
    Opening(Opening),
    /// It was sent, and the server or the connection failed.
    Sent(RedisError),
}

impl From<Opening> for Fault {
    fn from(opening: Opening) -> Self {
        Self::Opening(opening)
    }
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        Self::Sent(error)
    }
}

impl Fault {
    fn code(&self) -> Option<&str> {
        match self {
            Self::Opening(_) => None,
            Self::Sent(error) => error.code(),
        }
    }

    /// The server does not know the script.
    pub(crate) fn is_unknown_script(&self) -> bool {
        self.code() == Some("NOSCRIPT")
    }

    /// The server is at its `maxmemory` and evicts nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.code() == Some("OOM")
    }

    /// The server takes no writes, and can be read: it is full, has too few replicas
    /// (`min-replicas-to-write`), or could not save to disk (`stop-writes-on-bgsave-error`).
    pub(crate) fn refuses_writes(&self) -> bool {
        matches!(self.code(), Some("OOM" | "NOREPLICAS" | "MISCONF"))
    }

    /// The key is on its way to another node of the cluster.
    pub(crate) fn is_moving(&self) -> bool {
        matches!(self.code(), Some("MOVED" | "ASK" | "TRYAGAIN"))
    }

    /// At the key stands another type than the command is for.
    pub(crate) fn is_another_type(&self) -> bool {
        self.code() == Some("WRONGTYPE")
    }

    /// Nothing more can be done on the connection: it is gone, or leads to a server that is no
    /// master any more. A late reply alone says nothing; that takes a probe.
    pub(super) fn breaks(&self) -> bool {
        match self {
            Self::Opening(_) => false,
            Self::Sent(error) => {
                let demoted = matches!(
                    error.kind(),
                    ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
                );
                demoted || error.is_unrecoverable_error() || error.is_connection_dropped()
            }
        }
    }

    /// The error of a store. `what` is the key at which it happened, as stored.
    pub(crate) fn into_error(self, what: &str) -> StoreError {
        if self.is_another_type() {
            return StoreError::unreadable(format!(
                "{what} holds a value of another type: another program writes to this namespace; give each service its own"
            ));
        }
        if self.is_full() {
            return StoreError::full(format!(
                "Redis is at its `maxmemory`, so {what} was not written: raise `maxmemory`, or shorten the retention"
            ));
        }
        match self {
            Self::Opening(Opening::Unreachable(why)) => {
                StoreError::unavailable(format!("Redis cannot be reached for {what}: {why}"))
            }
            Self::Opening(Opening::Unusable(why)) => {
                StoreError::unavailable(format!("Redis cannot be used for {what}: {why}"))
            }
            Self::Sent(error) => {
                let hint = hint(&error);
                StoreError::unavailable(format!("Redis failed at {what}: {error}{hint}"))
                    .because(error)
            }
        }
    }
}

/// What to do, where the error alone does not say it.
fn hint(error: &RedisError) -> &'static str {
    match error.code() {
        Some("READONLY") => {
            " (this server is a replica; connect to the master, or through Sentinel)"
        }
        Some("NOREPLICAS") => " (fewer replicas than `min-replicas-to-write`)",
        Some("NOPERM") => " (grant the user what the page of `RedisStore` lists)",
        Some("MOVED" | "ASK") => " (this is a cluster; connect to it as one)",
        _ => "",
    }
}
