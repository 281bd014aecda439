//! Answers that are there already, or come later.

use std::{fmt, future::Future, pin::Pin};

/// A future on the heap, for the answers that are not there at once.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The answer of a store or a lock: there already, or later.
///
/// What never awaits answers [`Now`](Self::Now) and costs no allocation.
pub enum Step<T> {
    /// The answer.
    Now(T),
    /// The answer, once it has come over the network.
    Later(BoxFuture<T>),
}

impl<T> Step<T> {
    /// An answer that is awaited.
    pub fn later(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Waits for the answer.
    pub async fn answer(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(future) => future.await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Step<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
        }
    }
}
