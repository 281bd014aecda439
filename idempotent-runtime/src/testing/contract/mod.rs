//! The rules of a store, each as a check that says what the store did and what the rule wants.

mod cancel;
mod claim;
mod complete;
mod expiry;
mod key;
mod lease;
mod race;
mod record;
mod release;
mod renew;
mod watch;

mod bench;

use std::{fmt, sync::Arc, time::Duration};

use self::bench::{Bench, Checked, Failure};
use crate::store::{BoxFuture, Level, Store};

/// One rule.
struct Check {
    name: &'static str,
    levels: &'static [Level],
    run: fn(Bench) -> BoxFuture<Checked>,
}

/// For every store.
const ALL: &[Level] = &[Level::Embedded, Level::Leased, Level::Locked];
/// For stores whose every write compares tokens.
const FENCED: &[Level] = &[Level::Embedded, Level::Leased];
/// For stores whose claims lapse.
const LAPSING: &[Level] = &[Level::Leased, Level::Locked];
const LEASED: &[Level] = &[Level::Leased];
const EMBEDDED: &[Level] = &[Level::Embedded];

/// The checks of a module, named after it.
macro_rules! check_list {
    ($module:literal: $($levels:ident $name:ident),* $(,)?) => {
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            name: concat!($module, "::", stringify!($name)),
            levels: super::$levels,
            run: |bench| Box::pin($name(bench)),
        }),*];
    };
}
use check_list;

const GROUPS: &[&[Check]] = &[
    claim::CHECKS,
    complete::CHECKS,
    renew::CHECKS,
    release::CHECKS,
    expiry::CHECKS,
    lease::CHECKS,
    race::CHECKS,
    record::CHECKS,
    key::CHECKS,
    watch::CHECKS,
    cancel::CHECKS,
];

fn checks_of(level: Level) -> impl Iterator<Item = &'static Check> {
    let all = GROUPS.iter().copied().flatten();
    all.filter(move |check| check.levels.contains(&level))
}

/// The length of leases and retentions in checks that wait for their end.
const UNIT: Duration = Duration::from_millis(250);
/// What a slow machine may make of [`UNIT`].
const LONGEST_UNIT: Duration = Duration::from_secs(8);

/// A rule that a store broke.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The name of the check, such as `complete::keeps_another_record`.
    pub check: &'static str,
    /// What the store did, and what the rule wants.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.message)
    }
}

/// Checks that stores made by `make_store` keep every rule of the [`store`](crate::store) module
/// for the [`Level`] that they declare. A store is what passes this.
///
/// `make_store` is called once for each check. The stores may share a server: no key is used twice.
///
/// Some checks wait for the end of a lease. They take their time from Tokio, so a store that
/// answers without awaiting anything outside of Tokio is checked in no time under
/// `#[tokio::test(start_paused = true)]`; one that talks to a server needs real time, a few
/// seconds. Claims race on all threads of the runtime, so give it several where that matters.
///
/// # Panics
///
/// Where a rule is broken. The message lists every one.
///
/// ```
/// use idempotent_runtime::{MemoryStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // in your crate: #[tokio::test(start_paused = true)] async fn is_a_store() { .. }
/// testing::contract(async || MemoryStore::new()).await;
/// # }
/// ```
#[expect(clippy::panic, reason = "this is an assertion")]
#[track_caller]
pub fn contract<S: Store>(make_store: impl AsyncFn() -> S) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let violations = violations(make_store).await;
        if !violations.is_empty() {
            let lines: Vec<_> = violations
                .iter()
                .map(|violation| format!("  {violation}"))
                .collect();
            panic!(
                "the store checked at {place} breaks {} rules:\n{}",
                lines.len(),
                lines.join("\n")
            );
        }
    }
}

/// What [`contract`] would complain of, for a harness that reports by itself.
pub async fn violations<S: Store>(make_store: impl AsyncFn() -> S) -> Vec<Violation> {
    let level = make_store().await.level();
    let mut violations = Vec::new();
    for check in checks_of(level) {
        if let Err(message) = run(check, &make_store).await {
            violations.push(Violation {
                check: check.name,
                message,
            });
        }
    }
    violations
}

/// The names of the checks that apply to stores of this level.
pub fn checks(level: Level) -> impl Iterator<Item = &'static str> {
    checks_of(level).map(|check| check.name)
}

/// A check that the machine was too slow for says nothing; it is made again with longer times.
async fn run<S: Store>(check: &Check, make_store: &impl AsyncFn() -> S) -> Result<(), String> {
    let mut unit = UNIT;
    loop {
        let bench = Bench::new(Arc::new(make_store().await), unit);
        match (check.run)(bench).await {
            Ok(()) => return Ok(()),
            Err(Failure::Broken(message)) => return Err(message),
            Err(Failure::TooSlow) if unit < LONGEST_UNIT => unit *= 2,
            Err(Failure::TooSlow) => {
                return Err(format!(
                    "the store took longer than {unit:?} for a few commands, so nothing can be said"
                ));
            }
        }
    }
}
