//! What is to be done for requests later: one timer a process, for all of them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
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

/// Something that is due at some time.
pub(super) trait Duty: Send + Sync {
    fn carry_out(self: Arc<Self>) -> BoxFuture<()>;
}

/// What goes before what, of duties that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// The lease of a handler that runs: it does not wait.
    Running,
    /// What a run has left. After an outage there may be more of it than is carried out within a
    /// lease.
    Over,
}

/// Where a duty stands in the schedule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot(Rank, Due);

type Due = (Instant, u64);
type Duties = BTreeMap<Due, Arc<dyn Duty>>;

/// Duties by the time at which they are due. While the store is down none is carried out.
pub(super) struct Schedule {
    breaker: Arc<Breaker>,
    queue: Mutex<Queue>,
    /// An earlier duty has come, or the first one.
    earlier: Notify,
    running: AtomicBool,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    running: Duties,
    over: Duties,
    count: u64,
    /// When the task looks again by itself, while it sleeps.
    looks: Option<Instant>,
}

impl Queue {
    fn of(&mut self, rank: Rank) -> &mut Duties {
        match rank {
            Rank::Running => &mut self.running,
            Rank::Over => &mut self.over,
        }
    }

    fn is_empty(&self) -> bool {
        self.running.is_empty() && self.over.is_empty()
    }
}

impl Schedule {
    pub(super) fn new(breaker: Arc<Breaker>) -> Self {
        Self {
            breaker,
            queue: Mutex::default(),
            earlier: Notify::new(),
            running: AtomicBool::new(false),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    pub(super) fn put(self: &Arc<Self>, due: Instant, rank: Rank, duty: Arc<dyn Duty>) -> Slot {
        let (slot, early) = {
            let mut queue = self.queue.lock();
            queue.count += 1;
            let slot = Slot(rank, (due, queue.count));
            queue.of(rank).insert(slot.1, duty);
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
        let removed = self.queue.lock().of(slot.0).remove(&slot.1);
        // Not under the lock: it may be the last to hold what locks it again.
        drop(removed);
    }

    /// Goes on with what a Tokio runtime has left that has been shut down.
    pub(super) fn go_on(self: &Arc<Self>) {
        if !self.queue.lock().is_empty() {
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

    /// The first duty that is due by `now`; else when one will be.
    fn next(&self, now: Instant) -> Next {
        let mut queue = self.queue.lock();
        queue.looks = None;
        for rank in [Rank::Running, Rank::Over] {
            let Some(first) = queue.of(rank).first_entry() else {
                continue;
            };
            let (due, _) = *first.key();
            if due <= now {
                return Next::Due(rank, first.remove());
            }
            queue.looks = Some(queue.looks.map_or(due, |looks| looks.min(due)));
        }
        queue.looks.map_or(Next::Nothing, Next::At)
    }
}

enum Next {
    Nothing,
    At(Instant),
    Due(Rank, Arc<dyn Duty>),
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
        schedule.breaker.until_closed().await;
        // The semaphore is never closed.
        let place = Arc::clone(&schedule.places).acquire_owned().await;
        match schedule.next(clock::now()) {
            Next::Nothing => break,
            Next::At(due) => {
                drop(place);
                drop(time::timeout_at(due, schedule.earlier.notified()).await);
            }
            Next::Due(rank, duty) => {
                let under_way = InHand {
                    schedule,
                    duty: Some((rank, duty)),
                };
                drop(Handle::current().spawn(async move {
                    under_way.carry_out().await;
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

/// A duty that is being carried out. Where its Tokio runtime shuts down meanwhile it is due again,
/// for the next one.
struct InHand {
    schedule: Arc<Schedule>,
    duty: Option<(Rank, Arc<dyn Duty>)>,
}

impl InHand {
    async fn carry_out(mut self) {
        if let Some((_, duty)) = &self.duty {
            Arc::clone(duty).carry_out().await;
        }
        self.duty = None;
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some((rank, duty)) = self.duty.take() {
            self.schedule.put(clock::now(), rank, duty);
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").finish_non_exhaustive()
    }
}
