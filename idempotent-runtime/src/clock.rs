//! The one place that reads the time.

use std::time::Duration;

use tokio::time;
pub(crate) use tokio::time::Instant;

/// How late a timer may be before that says more of this process than of what it waits for.
const STALL: Duration = Duration::from_millis(20);

/// Now, on a clock that `tokio::time::pause` stops.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What comes within `limit`, counted anew where the process stood still meanwhile: the answer may
/// have come long ago, and nobody has read it yet.
pub(crate) async fn within<F: Future + Unpin>(limit: Duration, mut future: F) -> Option<F::Output> {
    let deadline = now() + limit;
    match time::timeout_at(deadline, &mut future).await {
        Ok(answer) => Some(answer),
        Err(_) if now() < deadline + STALL => None,
        Err(_) => time::timeout(limit, future).await.ok(),
    }
}
