//! What the engine does between a request and its store: renewals, reports, the breaker, what a
//! process knows by itself. The clock is paused; stores fail as they are told.
#![expect(clippy::disallowed_methods, reason = "a test owns its tasks")]

mod backlog;
mod breaker;
mod flapping;
mod follower;
mod limit;
mod lost_run;
mod process;
mod renewal;
mod report;
mod restart;
mod trace;
mod watch;

use std::time::Duration;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
