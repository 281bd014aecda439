//! `on_lost_run = "unknown"`: nobody runs again what may have taken effect.

use idempotent_runtime::testing::Fault;
use idempotent_tests::{
    http::until,
    replica::{LEASE, World},
};
use tokio::time::sleep;

use super::millis;

#[tokio::test(start_paused = true)]
async fn a_retry_after_a_death_is_refused_for_the_retention() {
    let world = World::default();
    let (one, two) = (world.replica().plan(60_000, 201), world.replica());
    let died = one.spawn("/unknown", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Hang);
    died.abort();
    sleep(LEASE + millis(100)).await;
    let reply = two.send("/unknown", "x").await;
    assert_eq!(reply.status, 409);
    assert_eq!(reply.problem(), "urn:idempotency:outcome-unknown");
    assert!(!reply.headers.contains_key("retry-after"));
    let other = two.send("/unknown", "another body").await;
    assert_eq!(other.problem(), "urn:idempotency:key-reused");
    sleep(millis(24 * 60 * 60 * 1000)).await;
    assert_eq!(two.send("/unknown", "x").await.outcome(), (201, false));
    assert_eq!(world.runs.count(), 2);
}

/// It was only cut off: what it reports heals the key.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_comes_back_says_how_it_ended() {
    for status in [201, 502] {
        let world = World::default();
        let (one, two) = (world.replica().plan(5000, status), world.replica());
        let first = one.spawn("/unknown", "x");
        until(|| world.runs.count() == 1).await;
        one.link.down(Fault::Fail);
        sleep(LEASE + millis(100)).await;
        let early = two.send("/unknown", "x").await;
        assert_eq!(early.problem(), "urn:idempotency:outcome-unknown");
        one.link.heal();
        let first = first.await.unwrap();
        assert_eq!(first.outcome(), (status, false));
        sleep(millis(100)).await;
        let late = two.send("/unknown", "x").await;
        assert_eq!(late.outcome(), (201, status == 201));
        assert_eq!(world.effects.count(), 1);
    }
}

/// The report comes when the key has lapsed long ago, and replaces the note.
#[tokio::test(start_paused = true)]
async fn a_success_that_is_reported_late_is_the_answer() {
    let world = World::default();
    let (one, two) = (world.replica().plan(1000, 201), world.replica());
    let first = one.spawn("/unknown", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Fail);
    let first = first.await.unwrap();
    sleep(LEASE * 5).await;
    let early = two.send("/unknown", "x").await;
    assert_eq!(early.problem(), "urn:idempotency:outcome-unknown");
    one.link.heal();
    sleep(millis(2000)).await;
    let late = two.send("/unknown", "x").await;
    assert_eq!((late.outcome(), late.body), ((201, true), first.body));
}
