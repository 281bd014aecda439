//! What a server answers in time, or why it does not.

use std::time::Duration;

use tokio::{runtime::Handle, time};

use crate::{
    connection::{Connection, Fault},
    error::StoreErrorKind,
    lock::error::LockError,
};

/// How long a command may take. Then the connection is replaced, and the lock faults.
const BOUND: Duration = Duration::from_secs(1);

/// Why a command has no answer.
pub(super) enum Unanswered {
    Fault(Fault),
    Late,
}

/// The answer to a command on this connection.
pub(super) async fn within_bound<T>(
    connection: &Connection,
    command: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Unanswered> {
    if let Ok(answer) = time::timeout(BOUND, command).await {
        return answer.map_err(Unanswered::Fault);
    }
    // The connection may lead nowhere, without saying so.
    let connection = connection.clone();
    let probing = async move { drop(connection.probe().await) };
    drop(Handle::current().spawn(probing));
    Err(Unanswered::Late)
}

impl Unanswered {
    /// The error of a lock. `stored` is its key in Redis.
    pub(super) fn into_error(self, stored: &str) -> LockError {
        match self {
            Self::Fault(fault) => {
                let error = fault.into_error(stored);
                match error.kind() {
                    StoreErrorKind::Unavailable => LockError::new("Redis failed as a lock"),
                    StoreErrorKind::Full => LockError::full("Redis has no room for a lock"),
                    StoreErrorKind::Unreadable => {
                        LockError::unreadable("what stands in Redis is no lock")
                    }
                }
                .because(error)
            }
            Self::Late => LockError::new(format!(
                "Redis did not answer for the lock at {stored} within {BOUND:?}"
            )),
        }
    }
}
