//! One process, several Tokio runtimes, one after another: what the first leaves, the next does.

use std::time::Duration;

use idempotent_runtime::testing::{Fault, Operation};
use idempotent_tests::{http::until, replica::World};
use tokio::runtime::{Builder, Runtime};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn tokio_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_report_that_was_cut_off_is_made_again() {
    let world = World::default();
    let one = world.replica();
    one.link.next(Operation::Complete, Fault::Hang);
    let first = tokio_runtime();
    let work = one.clone();
    first.block_on(async {
        drop(work.spawn("/", "x"));
        until(|| work.link.seen(Operation::Complete) == 1).await;
    });
    drop(first);
    tokio_runtime().block_on(async {
        let again = one.send("/", "x").await;
        assert_eq!(again.outcome(), (201, true));
    });
    assert_eq!(world.effects.count(), 1);
}

#[test]
fn a_drain_on_another_runtime_makes_the_reports() {
    let world = World::default();
    let one = world.replica();
    one.link.down(Fault::Fail);
    tokio_runtime().block_on(async {
        assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    });
    one.link.heal();
    tokio_runtime().block_on(async {
        one.runtime.drain(Duration::from_secs(5)).await.unwrap();
        assert_eq!(world.replica().send("/", "x").await.outcome(), (201, true));
    });
}
