//! Times to live, as Redis counts them.

use std::time::Duration;

/// The longest time to live, 100 years: as good as any longer one, and far from overflowing.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// A time to live in milliseconds, at least one. Zero would be no key, or none that ends.
pub(crate) fn millis(time: Duration) -> u64 {
    let millis = time.min(LONGEST).as_nanos().div_ceil(1_000_000).max(1);
    u64::try_from(millis).unwrap_or(u64::MAX)
}
