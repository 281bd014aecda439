//! The shortest traces by which a weaker protocol runs twice or answers two clients differently,
//! as its model found them. A, B and C are requests of one key.

use idempotent_runtime::testing::{Fault, Operation};
use idempotent_tests::{
    http::until,
    replica::{LEASE, World},
};
use tokio::time::sleep;

use super::millis;

/// A succeeds, and its completion cannot be reported before its lease is over.
#[tokio::test(start_paused = true)]
async fn a_completion_is_never_given_up() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    one.link.always(Operation::Complete, Fault::Fail);
    let a = one.send("/closed", "x").await;
    assert_eq!(a.outcome(), (201, false));
    sleep(LEASE * 4).await;
    // Renewed meanwhile, since the store answers otherwise.
    let b = two.send("/closed", "x").await;
    assert_eq!(b.problem(), "urn:idempotency:in-flight");
    one.link.heal();
    sleep(millis(1500)).await;
    let c = two.send("/closed", "x").await;
    assert_eq!((c.outcome(), c.body), ((201, true), a.body));
    assert_eq!(world.runs.count(), 1);
}

/// The reply to a completion is lost: the claim is not released because of it.
#[tokio::test(start_paused = true)]
async fn an_unsure_completion_is_followed_by_no_release() {
    for fault in [Fault::LoseReply, Fault::Fail, Fault::Late(millis(20))] {
        let world = World::default();
        let (one, two) = (world.replica(), world.replica());
        one.link.next(Operation::Complete, fault);
        let a = one.send("/closed", "x").await;
        sleep(millis(200)).await;
        let b = two.send("/closed", "x").await;
        assert_eq!(
            (a.outcome(), b.outcome(), &a.body),
            ((201, false), (201, true), &b.body),
            "{fault:?}"
        );
        assert_eq!(one.link.seen(Operation::Release), 0, "{fault:?}");
        assert_eq!(world.runs.count(), 1);
    }
}

/// A loses its lease while it runs; B takes over and fails after A has succeeded; C comes.
#[tokio::test(start_paused = true)]
async fn a_late_success_outlives_the_failure_of_who_took_over() {
    let world = World::default();
    let one = world.replica().plan(4000, 201);
    let two = world.replica().plan(2000, 502);
    let a = one.spawn("/closed", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Fail);
    sleep(millis(3500)).await;
    let b = two.spawn("/closed", "x");
    until(|| world.runs.count() == 2).await;
    one.link.heal();
    let a = a.await.unwrap();
    sleep(millis(700)).await;
    let b = b.await.unwrap();
    let c = two.send("/closed", "x").await;
    assert_eq!(a.outcome(), (201, false));
    assert_eq!(b.outcome(), (201, true), "its own failure is no answer");
    assert_eq!(c.outcome(), (201, true));
    assert_eq!((&b.body, &c.body), (&a.body, &a.body));
    assert_eq!((world.runs.count(), world.effects.count()), (2, 1));
}

/// A loses its lease, B succeeds beside it: both clients hold the same answer.
#[tokio::test(start_paused = true)]
async fn two_successes_are_answered_alike() {
    for a_first in [true, false] {
        let world = World::default();
        let one = world.replica().plan(5000, 201);
        let two = world.replica().plan(if a_first { 4000 } else { 500 }, 201);
        let a = one.spawn("/closed", "x");
        until(|| world.runs.count() == 1).await;
        one.link.down(Fault::Fail);
        sleep(millis(3500)).await;
        let b = two.spawn("/closed", "x");
        until(|| world.runs.count() == 2).await;
        one.link.heal();
        sleep(millis(1000)).await;
        let (a, b) = (a.await.unwrap(), b.await.unwrap());
        let again = two.send("/closed", "x").await;
        assert_eq!((&a.body, &b.body), (&again.body, &again.body), "{a_first}");
        assert_eq!((a.is_replay(), b.is_replay()), (!a_first, a_first));
        assert_eq!(one.leases_lost(), [true]);
    }
}

/// A loses its lease and fails after B has succeeded: A answers what stands.
#[tokio::test(start_paused = true)]
async fn a_failure_is_answered_by_the_success_that_stands() {
    let world = World::default();
    let one = world.replica().plan(5000, 502);
    let two = world.replica().plan(500, 201);
    let a = one.spawn("/closed", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Fail);
    sleep(millis(3500)).await;
    let b = two.send("/closed", "x").await;
    one.link.heal();
    let a = a.await.unwrap();
    assert_eq!((a.outcome(), b.outcome()), ((201, true), (201, false)));
    assert_eq!(a.body, b.body);
}

/// The store forgets A's claim while A runs: the renewal puts it back.
#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_forgot_is_put_back() {
    let world = World::default();
    let (one, two) = (world.replica().plan(4000, 201), world.replica());
    let a = one.spawn("/closed", "x");
    until(|| world.runs.count() == 1).await;
    world.store.clear();
    sleep(millis(1100)).await;
    let b = two.send("/closed", "x").await;
    assert_eq!(b.outcome(), (201, true));
    assert_eq!(a.await.unwrap().body, b.body);
    assert_eq!(world.runs.count(), 1);
}

/// B has seen A's claim; when it wakes, the store cannot be reached.
#[tokio::test(start_paused = true)]
async fn who_has_seen_a_claim_never_runs_unguarded() {
    let world = World::default();
    let (one, two) = (world.replica().plan(1000, 201), world.replica());
    let a = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    let b = two.spawn("/", "x");
    until(|| two.link.seen(Operation::Claim) > 0).await;
    sleep(millis(5)).await;
    two.link.down(Fault::Fail);
    let b = b.await.unwrap();
    assert_eq!(b.problem(), "urn:idempotency:in-flight");
    assert_eq!(a.await.unwrap().outcome(), (201, false));
    assert_eq!(world.runs.count(), 1);
}

/// A runs; C comes to the same process while the store cannot be reached.
#[tokio::test(start_paused = true)]
async fn a_process_runs_a_key_once_even_without_its_store() {
    let world = World::default();
    let one = world.replica().plan(1000, 201);
    let a = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Fail);
    let (c, other) = (one.spawn("/", "x"), one.send("/", "another body").await);
    assert_eq!(other.problem(), "urn:idempotency:key-reused");
    let (a, c) = (a.await.unwrap(), c.await.unwrap());
    assert_eq!((a.outcome(), c.outcome()), ((201, false), (201, true)));
    assert_eq!(a.body, c.body);
    let later = one.send("/", "x").await;
    assert_eq!((later.outcome(), later.body), ((201, true), a.body));
    assert_eq!(world.runs.count(), 1);
}

/// A runs unguarded; once the store is back, B elsewhere learns of it.
#[tokio::test(start_paused = true)]
async fn an_unguarded_run_is_reported_once_the_store_is_back() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    one.link.down(Fault::Fail);
    let a = one.send("/", "x").await;
    assert_eq!(a.outcome(), (201, false));
    sleep(millis(5000)).await;
    one.link.heal();
    sleep(millis(2000)).await;
    let b = two.send("/", "x").await;
    assert_eq!((b.outcome(), b.body), ((201, true), a.body));
    assert_eq!(world.runs.count(), 1);
}

/// An unguarded run that still works when the store comes back is guarded from then on.
#[tokio::test(start_paused = true)]
async fn an_unguarded_run_claims_once_the_store_is_back() {
    let world = World::default();
    let (one, two) = (world.replica().plan(6000, 201), world.replica());
    one.link.down(Fault::Fail);
    let a = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    sleep(millis(1000)).await;
    one.link.heal();
    sleep(millis(1500)).await;
    let b = two.send("/", "x").await;
    assert_eq!((b.outcome(), b.body), ((201, true), a.await.unwrap().body));
    assert_eq!(world.runs.count(), 1);
}

/// A claim that landed although its request was refused blocks nobody.
#[tokio::test(start_paused = true)]
async fn a_refusal_sends_a_release_behind_its_claim() {
    for fault in [Fault::LoseReply, Fault::Late(millis(20))] {
        let world = World::default();
        let (one, two) = (world.replica(), world.replica());
        one.link.next(Operation::Claim, fault);
        let a = one.send("/closed", "x").await;
        assert_eq!(a.problem(), "urn:idempotency:store-unavailable");
        if fault == Fault::LoseReply {
            until(|| one.link.seen(Operation::Release) == 1).await;
            let b = two.send("/closed", "x").await;
            assert_eq!(b.outcome(), (201, false));
        }
    }
}

/// What is reported after its retention would make a record anew.
#[tokio::test(start_paused = true)]
async fn a_report_ends_with_the_retention() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    one.link.down(Fault::Fail);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    assert_eq!(one.runtime.health().await.pending_reports, 1);
    sleep(millis(25 * 60 * 60 * 1000)).await;
    let reported = one.link.seen(Operation::Complete);
    one.link.heal();
    sleep(millis(2000)).await;
    assert_eq!(one.runtime.health().await.pending_reports, 0);
    assert_eq!(one.link.seen(Operation::Complete), reported);
    assert_eq!(two.send("/", "x").await.outcome(), (201, false));
    assert_eq!(world.runs.count(), 2);
}

/// A record that is stored late ends when it would have.
#[tokio::test(start_paused = true)]
async fn a_late_report_leaves_what_is_left_of_the_retention() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    one.link.down(Fault::Fail);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    let hours = async |n: u64| sleep(millis(n * 60 * 60 * 1000)).await;
    hours(20).await;
    one.link.heal();
    hours(3).await;
    assert_eq!(two.send("/", "x").await.outcome(), (201, true));
    hours(1).await;
    assert_eq!(two.send("/", "x").await.outcome(), (201, false));
}
