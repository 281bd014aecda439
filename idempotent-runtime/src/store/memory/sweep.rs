//! The task that removes what has expired while nobody asks.
//!
//! It begins with the first record and ends with the last. It holds the table weakly, and a guard
//! that says so when it ends in any way, a shut-down of its runtime included: the next completion
//! begins another one.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, task, time};

use super::table::{Swept, Table};

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Short enough that a gauge which traffic no longer moves is not stale for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Begins to sweep, unless that is going on. Without a runtime nothing is swept.
pub(super) fn ensure(table: &Arc<Table>) {
    if table.sweeping.load(Ordering::Relaxed) {
        return;
    }
    start(table);
}

#[cold]
fn start(table: &Arc<Table>) {
    let Ok(handle) = Handle::try_current() else {
        return;
    };
    if table.sweeping.swap(true, Ordering::AcqRel) {
        return;
    }
    let running = Running(Arc::downgrade(table));
    drop(handle.spawn(run(running)));
}

/// Says that nobody sweeps once it is dropped.
struct Running(Weak<Table>);

impl Drop for Running {
    fn drop(&mut self) {
        // A runtime without timers makes the task panic; another one would panic as well.
        if !thread::panicking()
            && let Some(table) = self.0.upgrade()
        {
            table.sweeping.store(false, Ordering::Release);
        }
    }
}

async fn run(running: Running) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        time::sleep(pause).await;
        let Some(next) = pass(&running.0).await else {
            break;
        };
        pause = next.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    }
    let table = Weak::clone(&running.0);
    drop(running);
    // A record that came just before has not begun a task, since this one was there.
    if let Some(table) = table.upgrade()
        && table.stripes().any(|stripe| stripe.len().1 > 0)
    {
        ensure(&table);
    }
}

/// One walk over all stripes, which lets other tasks run in between. How long until the next
/// expiry; `None` where no record is left, or no store.
async fn pass(table: &Weak<Table>) -> Option<Duration> {
    let mut next = u64::MAX;
    let mut at = 0;
    loop {
        let table = table.upgrade()?;
        let now = table.now();
        match table.sweep(at, now) {
            Swept::Part => {}
            Swept::Stripe { next_expiry } => {
                next = next.min(next_expiry);
                at += 1;
            }
            Swept::End => {
                table.report_now(now);
                return (next != u64::MAX).then(|| Duration::from_nanos(next.saturating_sub(now)));
            }
        }
        drop(table);
        task::consume_budget().await;
    }
}
