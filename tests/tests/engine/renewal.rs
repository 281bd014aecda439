//! Claims are renewed while their handler runs, and a lost one is told.

use idempotent_runtime::{
    Settings,
    testing::{Fault, Operation},
};
use idempotent_tests::{
    http::until,
    replica::{LEASE, PANIC, World},
};
use tokio::time::{Instant, sleep};

use super::millis;

/// Lease 1 s, handler 6 s; duplicates at 0.2 s, 2 s and 4 s.
#[tokio::test(start_paused = true)]
async fn b009_a_handler_may_take_longer_than_its_lease() {
    let world = World::default();
    let settings = || Settings::default().lease(millis(1000));
    let one = world.replica_with(settings()).plan(6000, 201);
    let two = world.replica_with(settings());
    let began = Instant::now();
    let first = one.spawn("/", "x");
    let mut duplicates = Vec::new();
    for at in [200, 2000, 4000] {
        tokio::time::sleep_until(began + millis(at)).await;
        duplicates.push(two.spawn("/", "x"));
    }
    let early = duplicates.remove(0).await.unwrap();
    assert_eq!(early.problem(), "urn:idempotency:in-flight");
    let waited = began.elapsed();
    assert!((millis(5200)..millis(5300)).contains(&waited), "{waited:?}");
    let first = first.await.unwrap();
    for duplicate in duplicates {
        let reply = duplicate.await.unwrap();
        assert_eq!((reply.outcome(), &reply.body), ((201, true), &first.body));
    }
    assert!(began.elapsed() < millis(6500), "{:?}", began.elapsed());
    assert_eq!((world.runs.count(), one.leases_lost()), (1, vec![false]));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_handlers_of_ten_leases_are_never_overtaken() {
    let world = World::default();
    let settings = || Settings::default().lease(millis(1000)).wait(millis(0));
    let one = world.replica_with(settings());
    let two = world.replica_with(settings());
    let runs: Vec<_> = (0..100)
        .map(|n| {
            let one = one.clone().plan(10_000, 201);
            one.spawn_with("/closed", &format!("k{n}"), "x")
        })
        .collect();
    until(|| world.runs.count() == 100).await;
    for _ in 0..19 {
        sleep(millis(500)).await;
        for n in 0..100 {
            let reply = two.spawn_with("/closed", &format!("k{n}"), "x");
            assert_eq!(reply.await.unwrap().status, 409);
        }
    }
    for run in runs {
        assert_eq!(run.await.unwrap().outcome(), (201, false));
    }
    assert_eq!(world.runs.count(), 100);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renewed_for_a_run_that_is_over() {
    let world = World::default();
    let one = world.replica().plan(1500, 201).plan(0, 502);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    let renewed = one.link.seen(Operation::Renew);
    assert_eq!(renewed, 1);
    assert_eq!(
        one.spawn_with("/", "failing", "x").await.unwrap().status,
        502
    );
    sleep(LEASE * 10).await;
    assert_eq!(one.link.seen(Operation::Renew), renewed);
}

/// A run that is cut off from its store for longer than its lease.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_told_to_the_handler() {
    for (fault, cut, lost) in [
        (Fault::Fail, 2500, false),
        (Fault::Fail, 4500, true),
        (Fault::Hang, 4500, true),
    ] {
        let world = World::default();
        let one = world.replica().plan(6000, 201);
        let run = one.spawn("/", "x");
        until(|| world.runs.count() == 1).await;
        one.link.down(fault);
        sleep(millis(cut)).await;
        one.link.heal();
        assert_eq!(run.await.unwrap().outcome(), (201, false));
        assert_eq!(one.leases_lost(), [lost], "{fault:?} for {cut} ms");
    }
}

/// A renewal is on its way when the handler ends: the report goes out behind it.
#[tokio::test(start_paused = true)]
async fn a_report_waits_for_the_renewal_before_it() {
    let world = World::default();
    let (one, two) = (world.replica().plan(1010, 502), world.replica());
    one.link.next(Operation::Renew, Fault::Delay(millis(50)));
    assert_eq!(one.send("/", "x").await.status, 502);
    sleep(millis(100)).await;
    let began = Instant::now();
    assert_eq!(two.send("/", "x").await.outcome(), (201, false));
    let waited = began.elapsed();
    assert!(waited < millis(10), "a claim was put back: {waited:?}");
}

/// Only A's link is cut, from 0.1 s to 1.9 s; B takes over; A fails and releases; C comes.
#[tokio::test(start_paused = true)]
async fn b008_a_release_frees_only_its_own_claim() {
    let world = World::default();
    let settings = || Settings::default().lease(millis(1000));
    let one = world.replica_with(settings()).plan(2000, 502);
    let two = world.replica_with(settings()).plan(2000, 201);
    let began = Instant::now();
    let at = async |ms| tokio::time::sleep_until(began + millis(ms)).await;
    let a = one.spawn("/", "x");
    at(100).await;
    one.link.down(Fault::Fail);
    at(1500).await;
    let b = two.spawn("/", "x");
    at(1900).await;
    one.link.heal();
    assert_eq!(a.await.unwrap().outcome(), (502, false));
    at(2200).await;
    let c = two.spawn("/", "x");
    let (b, c) = (b.await.unwrap(), c.await.unwrap());
    assert_eq!((b.outcome(), c.outcome()), ((201, false), (201, true)));
    assert_eq!((world.runs.count(), b.body), (2, c.body));
}

/// The handler panics in an outage that outlasts its lease: nobody renews for a run that is over.
#[tokio::test(start_paused = true)]
async fn nothing_is_renewed_for_a_run_that_died_in_an_outage() {
    let world = World::default();
    // A run of its own status is a panic.
    let (one, two) = (world.replica().plan(1500, PANIC), world.replica());
    let died = one.spawn("/closed", "x");
    until(|| world.runs.count() == 1).await;
    one.link.down(Fault::Fail);
    assert!(died.await.unwrap_err().is_panic());
    sleep(LEASE * 3).await;
    one.link.heal();
    sleep(millis(2000)).await;
    let began = Instant::now();
    assert_eq!(two.send("/closed", "x").await.outcome(), (201, false));
    assert!(began.elapsed() < millis(100), "{:?}", began.elapsed());
}

/// Completions fail while the store answers otherwise, with the lease of the default settings: it
/// is renewed between two tries.
#[tokio::test(start_paused = true)]
async fn a_claim_is_renewed_while_its_report_is_tried_again() {
    let world = World::default();
    let settings = || Settings::default().wait(millis(0));
    let one = world.replica_with(settings());
    let two = world.replica_with(settings());
    one.link.always(Operation::Complete, Fault::Fail);
    assert_eq!(one.send("/closed", "x").await.outcome(), (201, false));
    for _ in 0..20 {
        sleep(millis(10_000)).await;
        let reply = two.send("/closed", "x").await;
        assert_eq!(reply.problem(), "urn:idempotency:in-flight");
    }
    one.link.heal();
    sleep(millis(2000)).await;
    assert_eq!(two.send("/closed", "x").await.outcome(), (201, true));
}
