//! What holds a lock, and gives it back whatever happens.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{errand, error::LockError};
use crate::step::Step;

type Answer = Result<bool, LockError>;

/// One acquisition, as a [`DistributedLock`](super::DistributedLock) gives it to its [`Guard`].
///
/// Every command is for this acquisition only: it never touches what another holds under the same
/// key by now.
pub trait Hold: Send + Sync + 'static {
    /// Held by this acquisition → held for another `ttl` from now. Whether it was held: what has
    /// lapsed is not taken again.
    fn renew(&self, ttl: Duration) -> Step<Answer>;

    /// Held by this acquisition → free. Whether it was held. Called once, and carried out to its
    /// end even if the guard's owner has gone.
    fn release(&self) -> Step<Answer>;
}

/// A lock that is held, until [`release`](Self::release), the guard's end, or the end of its `ttl`.
///
/// Dropping it releases in the background, on the current Tokio runtime, or else on the one that it
/// was taken on; where both have shut down that is logged, and the key is free when its `ttl` is over. A guard that lapsed before its release logs a warning
/// then: its section was no longer exclusive.
#[must_use = "a guard that is dropped releases its lock"]
pub struct Guard(Option<Acquired>);

struct Acquired {
    about: About,
    hold: Box<dyn Hold>,
}

/// Whom log lines are about, and where a release may go on whose caller has left.
struct About {
    key: Box<str>,
    ttl: Duration,
    /// The Tokio runtime that the lock was taken on.
    runtime: Option<Handle>,
}

impl Guard {
    /// Made by a lock for each acquisition; `key` and `ttl` are for the log.
    pub fn new(key: impl Into<Box<str>>, ttl: Duration, hold: impl Hold) -> Self {
        Self(Some(Acquired {
            about: About {
                key: key.into(),
                ttl,
                runtime: Handle::try_current().ok(),
            },
            hold: Box::new(hold),
        }))
    }

    /// Holds the lock for another `ttl` from now, unless it has lapsed. Whether it is still held.
    ///
    /// The future borrows nothing, so that a guard can be renewed where it is kept.
    ///
    /// # Errors
    ///
    /// When the lock itself faults. It is held until the `ttl` is over that was asked for last, or
    /// for the new one.
    pub fn renew(&self, ttl: Duration) -> impl Future<Output = Answer> + Send + use<> {
        let step = self.0.as_ref().map(|held| held.hold.renew(ttl));
        async move {
            match step {
                Some(step) => step.answer().await,
                None => Ok(false),
            }
        }
    }

    /// Releases the lock, and waits until that is done. Whether it was held until now: if not, its
    /// `ttl` was too short, and another may have held it meanwhile. Never frees another's lock.
    ///
    /// A future that is dropped early goes on in the background.
    ///
    /// # Errors
    ///
    /// When the lock itself faults: the key is then free when the `ttl` is over.
    pub fn release(mut self) -> impl Future<Output = Answer> + Send + use<> {
        let release = self.0.take().map(Release::new);
        async move {
            match release {
                Some(release) => release.await,
                None => Ok(false),
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.take().map(Release::new));
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0.as_ref().map(|held| &held.about.key);
        f.debug_struct("Guard")
            .field("key", &key)
            .finish_non_exhaustive()
    }
}

/// A release under way; dropped before its end, it goes on in a task.
struct Release(Option<(Step<Answer>, About)>);

impl Release {
    fn new(held: Acquired) -> Self {
        Self(Some((held.hold.release(), held.about)))
    }
}

impl Future for Release {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        // Taken out while it is polled: what panics is not polled again.
        let Some((step, about)) = self.0.take() else {
            return Poll::Pending;
        };
        match step {
            Step::Now(answer) => Poll::Ready(about.released(answer)),
            Step::Later(mut command) => match command.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(about.released(answer)),
                Poll::Pending => {
                    self.0 = Some((Step::Later(command), about));
                    Poll::Pending
                }
            },
        }
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        match self.0.take() {
            None => {}
            Some((Step::Now(answer), about)) => about.released_unheard(answer),
            Some((Step::Later(command), about)) => {
                let (runtime, about) = (about.runtime.clone(), Arc::new(about));
                let heard = Arc::clone(&about);
                let released = async move { heard.released_unheard(command.await) };
                errand::carry_out(released, runtime, move || {
                    about.released_unheard(Err(LockError::new(
                        "no Tokio runtime carried its release out to the end",
                    )));
                });
            }
        }
    }
}

impl About {
    fn released(&self, answer: Answer) -> Answer {
        if let Ok(false) = answer {
            tracing::warn!(
                key = %self.key,
                ttl = ?self.ttl,
                "a lock had lapsed before it was released, so that another may have held it meanwhile: choose a longer time for it (its `ttl`; in a `LockedStore` the `lease`), or renew it sooner"
            );
        }
        answer
    }

    fn released_unheard(&self, answer: Answer) {
        if let Err(error) = self.released(answer) {
            tracing::warn!(
                key = %self.key,
                error = &error as &(dyn Error + 'static),
                "a lock could not be released: its key is free when its time of {:?} is over, at the latest",
                self.ttl
            );
        }
    }
}
