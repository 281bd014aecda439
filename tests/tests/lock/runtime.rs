//! Which Tokio runtime carries a release out: one that lives.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::lock::{Guard, Hold, LockError, Step};
use idempotent_tests::log::Log;
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

const TTL: Duration = Duration::from_secs(30);

/// Released over a network.
#[derive(Clone, Default)]
struct Remote(Arc<AtomicBool>);

impl Remote {
    fn is_released(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn guard(&self) -> Guard {
        Guard::new("the key", TTL, self.clone())
    }
}

impl Hold for Remote {
    fn renew(&self, _: Duration) -> Step<Result<bool, LockError>> {
        Step::Now(Ok(true))
    }

    fn release(&self) -> Step<Result<bool, LockError>> {
        let released = Arc::clone(&self.0);
        Step::later(async move {
            tokio::task::yield_now().await;
            released.store(true, Ordering::SeqCst);
            Ok(true)
        })
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime")
}

fn turns(runtime: &Runtime) {
    runtime.block_on(async { sleep(Duration::from_millis(10)).await });
}

#[test]
fn the_current_one_where_the_lock_was_taken_on_one_that_is_gone() {
    let (log, _logging) = Log::begin();
    let (remote, first, second) = (Remote::default(), runtime(), runtime());
    let guard = first.block_on(async { remote.guard() });
    drop(first);
    second.block_on(async { drop(guard) });
    turns(&second);
    assert!(remote.is_released());
    assert_eq!(log.with("WARN"), [""; 0]);
}

#[test]
fn the_one_that_it_was_taken_on_where_there_is_no_current_one() {
    let (remote, first) = (Remote::default(), runtime());
    drop(first.block_on(async { remote.guard() }));
    turns(&first);
    assert!(remote.is_released());
}

#[test]
fn the_one_that_it_was_taken_on_where_the_current_one_shuts_down() {
    let (log, _logging) = Log::begin();
    // Before its task has begun, and with it.
    for runs in [false, true] {
        let (remote, first, second) = (Remote::default(), runtime(), runtime());
        let guard = first.block_on(async { remote.guard() });
        drop(second.spawn(async move {
            let _guard = guard;
            sleep(TTL).await;
        }));
        if runs {
            turns(&second);
        }
        drop(second);
        turns(&first);
        assert!(remote.is_released(), "{runs}");
    }
    assert_eq!(log.with("WARN"), [""; 0]);
}

#[test]
fn a_release_on_its_way_goes_on_elsewhere() {
    let (log, _logging) = Log::begin();
    let (remote, first, second) = (Remote::default(), runtime(), runtime());
    let guard = first.block_on(async { remote.guard() });
    // Sent out on the second, which has no turn left for it.
    second.block_on(async { drop(guard) });
    assert!(!remote.is_released());
    drop(second);
    turns(&first);
    assert!(remote.is_released());
    assert_eq!(log.with("WARN"), [""; 0]);
}

#[test]
fn where_none_lives_it_is_said() {
    for current in [false, true] {
        let (log, _logging) = Log::begin();
        let (remote, first) = (Remote::default(), runtime());
        let guard = first.block_on(async { remote.guard() });
        let second = if current {
            let second = runtime();
            drop(first);
            drop(second.spawn(async move {
                let _guard = guard;
            }));
            second
        } else {
            drop(guard);
            first
        };
        assert_eq!(log.with("WARN"), [""; 0]);
        drop(second);
        let lines = log.with("WARN");
        assert_eq!(lines.len(), 1, "{current}: {lines:?}");
        for part in ["could not be released", "key=the key", "runtime", "30s"] {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
        assert!(!remote.is_released());
    }
}

/// A lock whose release panics.
struct Panics;

impl Hold for Panics {
    fn renew(&self, _: Duration) -> Step<Result<bool, LockError>> {
        Step::Now(Ok(true))
    }

    fn release(&self) -> Step<Result<bool, LockError>> {
        Step::later(async { unreachable!("as planned") })
    }
}

#[test]
fn a_release_that_panics_is_not_polled_again_and_is_said() {
    let (log, _logging) = Log::begin();
    let runtime = runtime();
    runtime.block_on(async { drop(Guard::new("the key", TTL, Panics)) });
    turns(&runtime);
    assert_eq!(log.with("could not be released").len(), 1);
}
