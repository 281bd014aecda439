//! Locks in the memory of this process: a queue for each key, and who waits in it.

mod queue;

use std::{
    sync::{Arc, Once},
    time::Duration,
};

use tokio::{sync::Notify, time};

pub(super) use self::queue::Queue;
use self::queue::Waiter;
use super::{
    error::LockError,
    guard::{Guard, Hold},
};
use crate::{
    clock::{self, Instant},
    record::Token,
    step::{BoxFuture, Step},
};

/// Less than this is no time to hold anything; Redis has no shorter either.
const SHORTEST_TTL: Duration = Duration::from_millis(1);

/// The queues of a lock, by key.
pub(super) trait Queues: Send + Sync + 'static {
    type Key: Send + Sync + 'static;

    /// Changes the queue of a key. What is idle after that need not be kept.
    fn with<T>(&self, key: &Self::Key, change: impl FnOnce(&mut Queue) -> T) -> T;
}

/// Takes the lock at a key, at most after `wait`.
pub(super) fn acquire<Q: Queues>(
    queues: &Arc<Q>,
    name: &str,
    key: Q::Key,
    ttl: Duration,
    wait: Duration,
) -> BoxFuture<Result<Option<Guard>, LockError>> {
    let ttl = ttl.max(SHORTEST_TTL);
    let ticket = Ticket {
        queues: Arc::clone(queues),
        key,
        token: Token::unique(),
    };
    let name: Box<str> = name.into();
    Box::pin(async move {
        let held = ticket.held(ttl, wait).await;
        Ok(held.then(|| Guard::new(name, ttl, ticket)))
    })
}

/// What somebody holds or waits for; given up when it is dropped.
struct Ticket<Q: Queues> {
    queues: Arc<Q>,
    key: Q::Key,
    token: Token,
}

/// Whether it is a ticket's turn.
enum Turn {
    Now,
    Later {
        /// When to ask again by itself, if nobody wakes it before.
        lapses: Option<Instant>,
    },
}

impl<Q: Queues> Ticket<Q> {
    async fn held(&self, ttl: Duration, wait: Duration) -> bool {
        let now = clock::now();
        if wait.is_zero() {
            return self
                .queues
                .with(&self.key, |queue| queue.take(self.token, ttl, now));
        }
        let deadline = now.checked_add(wait);
        let wake = Arc::new(Notify::new());
        loop {
            let lapses = match self.turn(ttl, &wake) {
                Turn::Now => return true,
                Turn::Later { lapses } => lapses,
            };
            if deadline.is_some_and(|deadline| deadline <= clock::now()) {
                return false;
            }
            match deadline.into_iter().chain(lapses).min() {
                Some(until) => drop(time::timeout_at(until, wake.notified()).await),
                None => wake.notified().await,
            }
        }
    }

    fn turn(&self, ttl: Duration, wake: &Arc<Notify>) -> Turn {
        self.queues.with(&self.key, |queue| {
            if queue.take(self.token, ttl, clock::now()) {
                return Turn::Now;
            }
            queue.enter(Waiter {
                token: self.token,
                ttl,
                wake: Arc::clone(wake),
            });
            Turn::Later {
                lapses: queue.lapses(self.token),
            }
        })
    }

    fn leave(&self) -> bool {
        let now = clock::now();
        self.queues
            .with(&self.key, |queue| queue.leave(self.token, now))
    }
}

impl<Q: Queues> Hold for Ticket<Q> {
    fn renew(&self, ttl: Duration) -> Step<Result<bool, LockError>> {
        let (now, ttl) = (clock::now(), ttl.max(SHORTEST_TTL));
        let renewed = self
            .queues
            .with(&self.key, |queue| queue.renew(self.token, ttl, now));
        Step::Now(Ok(renewed))
    }

    fn release(&self) -> Step<Result<bool, LockError>> {
        Step::Now(Ok(self.leave()))
    }
}

impl<Q: Queues> Drop for Ticket<Q> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Says once a process that a lock does not reach other replicas.
pub(super) fn warn_once(said: &Once, what: &'static str) {
    said.call_once(|| {
        tracing::warn!(
            "{what} excludes within this process only: where several replicas serve the same keys, give them a lock that all of them see, such as `RedisLock`"
        );
    });
}
