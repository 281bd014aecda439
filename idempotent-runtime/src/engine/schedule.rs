//! What is to be done for requests later: one timer for all of a kind.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore},
    time,
};

use super::breaker::Breaker;
use crate::{
    clock::{self, Instant},
    store::BoxFuture,
};

/// How many are carried out at a time, so that a store which has just come back is not flooded.
const AT_A_TIME: usize = 32;

/// How long a duty rests in which the store has panicked.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Something that is due at some time.
pub(super) trait Duty: Send + Sync {
    fn carry_out(self: Arc<Self>) -> BoxFuture<()>;
}

/// Where a duty stands in the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(Instant, u64);

/// Duties by the time at which they are due. While the store is down none is carried out.
pub(super) struct Schedule {
    breaker: Arc<Breaker>,
    queue: Mutex<Queue>,
    /// An earlier duty has come, or the first one.
    earlier: Arc<Notify>,
    running: AtomicBool,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    duties: BTreeMap<Slot, Arc<dyn Duty>>,
    count: u64,
    /// When the task looks again by itself, while it sleeps.
    looks: Option<Instant>,
}

impl Schedule {
    pub(super) fn new(breaker: Arc<Breaker>) -> Self {
        Self {
            breaker,
            queue: Mutex::default(),
            earlier: Arc::default(),
            running: AtomicBool::new(false),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    pub(super) fn put(self: &Arc<Self>, due: Instant, duty: Arc<dyn Duty>) -> Slot {
        let (slot, early) = {
            let mut queue = self.queue.lock();
            queue.count += 1;
            let slot = Slot(due, queue.count);
            queue.duties.insert(slot, duty);
            (slot, queue.looks.is_none_or(|looks| due < looks))
        };
        if early {
            self.earlier.notify_one();
        }
        if !self.running.load(Ordering::Acquire) {
            self.start();
        }
        slot
    }

    pub(super) fn remove(&self, slot: Slot) {
        let removed = self.queue.lock().duties.remove(&slot);
        // Not under the lock: it may be the last to hold what locks it again.
        drop(removed);
    }

    /// Goes on with what a Tokio runtime has left that has been shut down.
    pub(super) fn go_on(self: &Arc<Self>) {
        if !self.running.load(Ordering::Acquire) && !self.queue.lock().duties.is_empty() {
            self.start();
        }
    }

    #[cold]
    fn start(self: &Arc<Self>) {
        // Without a Tokio runtime nothing is carried out; the next one begins.
        if let Ok(handle) = Handle::try_current()
            && !self.running.swap(true, Ordering::AcqRel)
        {
            drop(handle.spawn(run(Running(Arc::downgrade(self)))));
        }
    }

    /// Whether the first duty is due by `now`, or when it will be.
    fn next(&self, now: Instant) -> Next {
        let mut queue = self.queue.lock();
        let next = match queue.duties.first_key_value() {
            None => Next::Nothing,
            Some((first, _)) if first.0 <= now => Next::Due,
            Some((first, _)) => Next::At(first.0),
        };
        queue.looks = match next {
            Next::At(due) => Some(due),
            Next::Nothing | Next::Due => None,
        };
        next
    }

    /// The first duty, if it is still due by `now`.
    fn take(&self, now: Instant) -> Option<Arc<dyn Duty>> {
        let mut queue = self.queue.lock();
        let first = queue.duties.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

enum Next {
    Nothing,
    At(Instant),
    Due,
}

/// Says that no task looks at the schedule once it is dropped.
struct Running(Weak<Schedule>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(schedule) = self.0.upgrade() {
            schedule.running.store(false, Ordering::Release);
        }
    }
}

/// Carries out what is due until nothing is left, or nobody could put anything in any more.
async fn run(running: Running) {
    while let Some(schedule) = running.0.upgrade() {
        match schedule.next(clock::now()) {
            Next::Nothing => break,
            Next::At(due) => {
                let earlier = Arc::clone(&schedule.earlier);
                drop(schedule);
                drop(time::timeout_at(due, earlier.notified()).await);
            }
            Next::Due => {
                schedule.breaker.until_closed().await;
                // The semaphore is never closed.
                let place = Arc::clone(&schedule.places).acquire_owned().await;
                let Some(duty) = schedule.take(clock::now()) else {
                    continue;
                };
                let in_hand = InHand {
                    schedule,
                    duty: Some(duty),
                };
                drop(Handle::current().spawn(async move {
                    in_hand.carry_out().await;
                    drop(place);
                }));
            }
        }
    }
    let schedule = Weak::clone(&running.0);
    drop(running);
    // What came just before has not begun a task, since this one was there.
    if let Some(schedule) = schedule.upgrade() {
        schedule.go_on();
    }
}

/// A duty that is being carried out. Where its Tokio runtime shuts down meanwhile, or the store
/// panics, it is due again.
struct InHand {
    schedule: Arc<Schedule>,
    duty: Option<Arc<dyn Duty>>,
}

impl InHand {
    async fn carry_out(mut self) {
        if let Some(duty) = &self.duty {
            Arc::clone(duty).carry_out().await;
        }
        self.duty = None;
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(duty) = self.duty.take() {
            // A store that panics does so again.
            let pause = if thread::panicking() {
                AFTER_PANIC
            } else {
                Duration::ZERO
            };
            self.schedule.put(clock::now() + pause, duty);
        }
    }
}
