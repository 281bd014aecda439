//! One table of defaults and bounds; checked once, when the runtime is built.

mod human;

use std::time::Duration;

use axum::http::HeaderName;
use serde::Deserialize;

use humantime::format_duration;

use self::human::Raw;

/// What a request does when the store fails before its handler has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// The handler runs without the guarantee; counted and logged.
    Open,
    /// 503 with `Retry-After: 1`; the handler does not run.
    Closed,
}

/// What a retry does that finds an attempt of which nobody knows how it ended: its process died, or
/// was cut off from the store, for longer than the lease.
///
/// Said on a handler, as in `#[idempotent(on_lost_run = "unknown")]`. It takes a
/// [leased](crate::store::Level::Leased) store, such as `RedisStore`: one of another level forgets the
/// attempt, and the retry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLostRun {
    /// It runs the handler again.
    Retry,
    /// It is refused with 409, until the attempt is reported after all or its retention is over.
    Unknown,
}

/// The numbers of a runtime. Every field has a default; [`build`](crate::Builder::build) names all
/// values that are out of bounds in one error.
///
/// | setting | default | bounds |
/// |---|---|---|
/// | `retention` | 24 h | 1 h to 168 h |
/// | `lease` | 30 s | 1 s to 1 h |
/// | `wait` | 5 s | 0 to 60 s |
/// | `store_timeout` | 100 ms | 1 ms to 60 s |
/// | `max_request_bytes` | 16 MiB | 1 B to 1 GiB |
/// | `max_response_bytes` | 1 MiB | 1 B to 1 GiB |
/// | `max_in_flight` | 4096 | 1 or more |
/// | `max_waiters_per_key` | 1000 | 1 or more |
/// | `on_store_failure` | `open` | `open`, `closed` |
/// | `header` | `Idempotency-Key` | a header name |
/// | `replay_header` | `X-Idempotent-Replay` | a header name |
///
/// In a configuration file durations are texts with a unit, such as `"24h"`, `"5s"` or `"1h 30m"`:
///
/// ```
/// use std::time::Duration;
/// use config::{Config, File, FileFormat};
/// use idempotent_runtime::Settings;
///
/// let file = r#"
/// [idempotency]
/// retention = "48h"
/// wait = "2s"
/// on_store_failure = "closed"
/// "#;
/// let config = Config::builder().add_source(File::from_str(file, FileFormat::Toml)).build()?;
/// let settings: Settings = config.get("idempotency")?;
///
/// assert_eq!(settings, Settings::default()
///     .retention(Duration::from_secs(48 * 60 * 60))
///     .wait(Duration::from_secs(2))
///     .on_store_failure(idempotent_runtime::OnStoreFailure::Closed));
/// # Ok::<(), config::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub struct Settings {
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    pub(crate) store_timeout: Duration,
    pub(crate) max_request_bytes: usize,
    pub(crate) max_response_bytes: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) max_waiters_per_key: usize,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) header: HeaderName,
    pub(crate) replay_header: HeaderName,
    /// What a configuration file said that is no value at all; named by `build`.
    unreadable: Vec<String>,
}

const HOUR: Duration = Duration::from_hours(1);
const MIB: usize = 1024 * 1024;
/// The shortest and longest retention. A week is longer than any client retries, and bounds what
/// a forgotten setting can fill a store with.
const RETENTION: (Duration, Duration) = (HOUR, Duration::from_hours(168));
const LEASE: (Duration, Duration) = (Duration::from_secs(1), HOUR);
const WAIT: (Duration, Duration) = (Duration::ZERO, Duration::from_mins(1));
const STORE_TIMEOUT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_mins(1));
const BYTES: (usize, usize) = (1, 1024 * MIB);
const COUNT: (usize, usize) = (1, usize::MAX);

impl Default for Settings {
    fn default() -> Self {
        Self {
            retention: 24 * HOUR,
            lease: Duration::from_secs(30),
            wait: Duration::from_secs(5),
            store_timeout: Duration::from_millis(100),
            max_request_bytes: 16 * MIB,
            max_response_bytes: MIB,
            max_in_flight: 4096,
            max_waiters_per_key: 1000,
            on_store_failure: OnStoreFailure::Open,
            header: HeaderName::from_static("idempotency-key"),
            replay_header: HeaderName::from_static("x-idempotent-replay"),
            unreadable: Vec::new(),
        }
    }
}

/// A setter that consumes and returns the settings.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        })*
    };
}

impl Settings {
    setters! {
        /// How long a finished request is remembered. Default 24 h, from 1 h to 168 h.
        retention: Duration,
        /// How long a claim outlives the process that holds it, in stores with leases. While the
        /// handler runs it is renewed each third of it.
        /// Default 30 s, from 1 s to 1 h.
        lease: Duration,
        /// How long a duplicate waits for the first request before it is refused with 409.
        /// Default 5 s, from 0 to 60 s.
        wait: Duration,
        /// How long a request waits for one command of the store. Default 100 ms, from 1 ms to 60 s.
        /// Counted anew, once, where the process itself stood still meanwhile.
        store_timeout: Duration,
        /// The largest request body of a request with a key. Default 16 MiB; over it 413. The
        /// handler's own extractor may have a lower limit; a handler that does not read its body has
        /// this one, because the body is part of what is compared.
        max_request_bytes: usize,
        /// The largest response body that is stored. Default 1 MiB; over it the first client gets
        /// its response, and a duplicate 409. A replay comes from the store within `store_timeout`,
        /// so a larger one may need a longer one.
        max_response_bytes: usize,
        /// How many handlers of requests with a key run at a time. Default 4096; over it 503.
        max_in_flight: usize,
        /// How many duplicates wait for one key at a time. Default 1000; over it 409 at once.
        max_waiters_per_key: usize,
        /// What happens when the store fails before the handler has run. Default
        /// [`OnStoreFailure::Open`].
        on_store_failure: OnStoreFailure,
        /// The header that carries the key. Default `Idempotency-Key`.
        header: HeaderName,
        /// The header that marks a replay. Default `X-Idempotent-Replay`.
        replay_header: HeaderName,
    }

    /// A renewal that takes its whole time must leave time for another one.
    pub(crate) fn warn_of_short_leases(&self) {
        if self.store_timeout > self.lease / 3 {
            tracing::warn!(
                store_timeout = ?self.store_timeout,
                lease = ?self.lease,
                "`store_timeout` is more than a third of `lease`: one slow renewal may let a lease run out while its handler runs; lower the one or raise the other"
            );
        }
    }

    /// Every value that is out of its bounds, as a sentence each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.unreadable.clone();
        for (name, value, (least, most)) in [
            ("retention", self.retention, RETENTION),
            ("lease", self.lease, LEASE),
            ("wait", self.wait, WAIT),
            ("store_timeout", self.store_timeout, STORE_TIMEOUT),
        ] {
            if value < least || value > most {
                problems.push(format!(
                    "`{name}` is {}, not between {} and {}",
                    format_duration(value),
                    format_duration(least),
                    format_duration(most)
                ));
            }
        }
        for (name, value, (least, most)) in [
            ("max_request_bytes", self.max_request_bytes, BYTES),
            ("max_response_bytes", self.max_response_bytes, BYTES),
            ("max_in_flight", self.max_in_flight, COUNT),
            ("max_waiters_per_key", self.max_waiters_per_key, COUNT),
        ] {
            if value < least || value > most {
                let most = if most == usize::MAX {
                    "any larger number".to_owned()
                } else {
                    most.to_string()
                };
                problems.push(format!(
                    "`{name}` is {value}, not between {least} and {most}"
                ));
            }
        }
        if self.header == self.replay_header {
            problems.push(format!(
                "`header` and `replay_header` are both `{}`",
                self.header
            ));
        }
        problems
    }
}
