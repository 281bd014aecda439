//! The one place that reads the time.

pub(crate) use tokio::time::Instant;

/// Now, on a clock that `tokio::time::pause` stops.
pub(crate) fn now() -> Instant {
    Instant::now()
}
