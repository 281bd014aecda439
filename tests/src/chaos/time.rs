//! The time of day, by which rows of several processes are put in order.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::history::Ms;

/// Milliseconds since 1970, as rows tell them.
///
/// # Panics
///
/// Where the clock stands before 1970.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "compared with what other processes have written"
)]
pub fn now() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.expect("a time after 1970").as_millis();
    Ms::try_from(since).expect("a time before the year 500000000")
}

/// Waits so many milliseconds.
pub async fn pause(ms: Ms) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
