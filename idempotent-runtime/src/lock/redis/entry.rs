//! What one owner does at one key, a command a method.

use std::{error::Error, sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tokio::runtime::Handle;

use super::answer::{Unanswered, within_bound};
use crate::{
    connection::{Answer, Connection, Fault, Script, millis},
    lock::{errand, error::LockError},
};

static RELEASE: Script = Script::new(include_str!("release.lua"));
static RENEW: Script = Script::new(include_str!("renew.lua"));

/// A key, and who wants it or has it.
pub(super) struct Entry {
    pub(super) connection: Connection,
    /// The key in Redis.
    pub(super) stored: String,
    /// The value there.
    pub(super) owner: String,
    /// The Tokio runtime that the lock was asked for on.
    pub(super) runtime: Option<Handle>,
}

impl Entry {
    /// Takes it if nobody has it. If that ends in any other way than with an answer, a release is
    /// sent behind it.
    pub(super) async fn take(self: &Arc<Self>, ttl: Duration) -> Result<bool, LockError> {
        let mut behind = ReleaseBehind(Some(Arc::clone(self)));
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
                self.renew(ttl).await?
            }
            Ok(_) => false,
            Err(unanswered) => {
                if let Unanswered::Fault(Fault::Opening(_)) = unanswered {
                    // It was never sent.
                    behind.0 = None;
                }
                return Err(unanswered.into_error(&self.stored));
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

    async fn send(&self, command: &Cmd) -> Result<Value, Unanswered> {
        within_bound(&self.connection, self.connection.send(command)).await
    }

    /// Whether it was the owner's, who has it for another `ttl`.
    pub(super) async fn renew(&self, ttl: Duration) -> Result<bool, LockError> {
        let ttl = millis(ttl).to_string();
        self.run(&RENEW, &[self.owner.as_bytes(), ttl.as_bytes()])
            .await
    }

    /// Whether it was the owner's. If that is not known in the end, it is released again behind it.
    pub(super) async fn release(self: &Arc<Self>) -> Result<bool, LockError> {
        let mut behind = ReleaseBehind(Some(Arc::clone(self)));
        let released = self.released().await?;
        behind.0 = None;
        Ok(released)
    }

    async fn released(&self) -> Result<bool, LockError> {
        self.run(&RELEASE, &[self.owner.as_bytes()]).await
    }

    /// Runs a script that does something where the value is the owner's; whether it was.
    async fn run(&self, script: &Script, arguments: &[&[u8]]) -> Result<bool, LockError> {
        let call = script.run(&self.connection, &self.stored, arguments);
        let answer = within_bound(&self.connection, call).await;
        let answer = answer.map_err(|unanswered| unanswered.into_error(&self.stored))?;
        Ok(answer == Answer::Did(1))
    }

    /// Releases what may have been taken, over a fresh connection if the present one fails.
    async fn make_sure(&self) {
        if self.released().await.is_ok() {
            return;
        }
        let probed = self.connection.probe().await;
        if let Err(error) = self.released().await {
            tracing::debug!(
                key = self.stored,
                reachable = probed.is_ok(),
                error = &error as &(dyn Error + 'static),
                "what may be locked could not be released: it is free when its time is over"
            );
        }
    }
}

/// Releases what may be locked without anybody knowing, in the background. By owner, so it never
/// frees another's; after what may have locked it, since a connection keeps the order of commands,
/// and is closed at the server before the next one is used.
struct ReleaseBehind(Option<Arc<Entry>>);

impl Drop for ReleaseBehind {
    fn drop(&mut self) {
        let Some(entry) = self.0.take() else {
            return;
        };
        let (runtime, stored) = (entry.runtime.clone(), entry.stored.clone());
        let released = async move { entry.make_sure().await };
        errand::carry_out(released, runtime, move || {
            tracing::warn!(
                key = stored,
                "what may be locked could not be released, for want of a Tokio runtime: it is free when its time is over"
            );
        });
    }
}
