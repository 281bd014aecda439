//! A store that is down costs a request nothing, and is used again soon after it works.

use idempotent_runtime::{
    StoreHealth,
    testing::{Fault, Operation},
};
use idempotent_tests::replica::World;
use tokio::time::{Instant, advance, sleep};

use super::millis;

#[tokio::test(start_paused = true)]
async fn b024_a_hung_store_costs_only_who_is_under_way() {
    let world = World::default();
    let one = world.replica();
    one.link.down(Fault::Hang);
    for n in 0..50 {
        let began = Instant::now();
        let reply = one.spawn_with("/", &format!("k{n}"), "x").await.unwrap();
        assert_eq!(reply.outcome(), (201, false));
        let limit = if n == 0 { 200 } else { 1 };
        assert!(
            began.elapsed() <= millis(limit),
            "{n}: {:?}",
            began.elapsed()
        );
        sleep(millis(20)).await;
    }
    assert_eq!(one.link.seen(Operation::Claim), 1);
    assert!(one.link.seen(Operation::Probe) >= 1);
    let health = one.runtime.health().await;
    assert!(!health.is_guarded());
    assert!(matches!(health.store, StoreHealth::Down { since } if since >= millis(900)));
    assert_eq!(health.pending_reports, 50);
    assert!(health.pending_bytes > 0);
}

#[tokio::test(start_paused = true)]
async fn it_is_used_again_within_two_seconds() {
    for fault in [Fault::Hang, Fault::Fail] {
        let world = World::default();
        let one = world.replica();
        one.link.down(fault);
        for n in 0..5 {
            drop(one.spawn_with("/", &format!("k{n}"), "x").await.unwrap());
        }
        sleep(millis(60_000)).await;
        one.link.heal();
        let began = Instant::now();
        while !one.runtime.health().await.is_guarded() {
            sleep(millis(10)).await;
        }
        assert!(began.elapsed() < millis(2000), "{:?}", began.elapsed());
        sleep(millis(100)).await;
        let health = one.runtime.health().await;
        assert_eq!((health.pending_reports, health.pending_bytes), (0, 0));
        let reply = world.replica().spawn_with("/", "k3", "x").await.unwrap();
        assert_eq!(reply.outcome(), (201, true), "{fault:?}");
    }
}

/// Its timers are late too, and what has come meanwhile is still to be read.
#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_does_not_blame_the_store() {
    let world = World::default();
    let one = world.replica();
    one.link.next(Operation::Claim, Fault::Delay(millis(550)));
    let reply = one.spawn_with("/closed", "k", "x");
    sleep(millis(1)).await;
    advance(millis(500)).await;
    assert_eq!(reply.await.unwrap().outcome(), (201, false));
    assert_eq!(one.link.seen(Operation::Probe), 0);
}

/// A probe that promises too much: the store is asked ever less often.
#[tokio::test(start_paused = true)]
async fn a_store_that_only_seems_to_work_is_tried_ever_less_often() {
    let world = World::default();
    let one = world.replica();
    for operation in [
        Operation::Claim,
        Operation::Renew,
        Operation::Complete,
        Operation::Release,
    ] {
        one.link.always(operation, Fault::Hang);
    }
    let mut slow = 0;
    for n in 0..1000 {
        let began = Instant::now();
        let reply = one.spawn_with("/closed", &format!("k{n}"), "x").await;
        assert_eq!(reply.unwrap().status, 503);
        slow += usize::from(began.elapsed() >= millis(100));
        sleep(millis(10)).await;
    }
    assert!(
        slow <= 30,
        "{slow} of 1000 requests in ten seconds waited for it"
    );
}

/// A store that answers, though not as it should, is not down.
#[tokio::test(start_paused = true)]
async fn a_single_failure_does_not_keep_others_from_the_store() {
    let world = World::default();
    let one = world.replica();
    one.link.next(Operation::Claim, Fault::Fail);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    let reply = one.spawn_with("/", "other", "x").await.unwrap();
    assert_eq!(reply.outcome(), (201, false));
    assert_eq!(one.link.seen(Operation::Probe), 0);
    assert!(one.runtime.health().await.is_guarded());
}

#[tokio::test(start_paused = true)]
async fn closed_is_refused_at_once_and_runs_again_afterwards() {
    let world = World::default();
    let one = world.replica();
    one.link.down(Fault::Hang);
    for n in 0..20 {
        let began = Instant::now();
        let reply = one.send("/closed", "x").await;
        assert_eq!(reply.problem(), "urn:idempotency:store-unavailable");
        assert_eq!(reply.headers["retry-after"], "1");
        assert!(n == 0 || began.elapsed() < millis(1));
    }
    one.link.heal();
    sleep(millis(2000)).await;
    assert_eq!(one.send("/closed", "x").await.outcome(), (201, false));
    assert_eq!(world.runs.count(), 1);
}

/// Commands that were sent before the store was found to work say nothing of it afterwards.
#[tokio::test(start_paused = true)]
async fn late_failures_of_before_do_not_open_it_again() {
    let world = World::default();
    let one = world.replica();
    one.link.down(Fault::Hang);
    let late: Vec<_> = (0..9)
        .map(|n| {
            let one = one.clone();
            tokio::spawn(async move {
                sleep(millis(n * 10)).await;
                one.spawn_with("/", &format!("k{n}"), "x").await.unwrap()
            })
        })
        .collect();
    sleep(millis(95)).await;
    one.link.heal();
    // The first is late at 100 ms; the others are until 180 ms.
    for n in 11..20 {
        sleep(millis(10)).await;
        assert!(one.runtime.health().await.is_guarded(), "at {n}0 ms");
    }
    for late in late {
        assert_eq!(late.await.unwrap().status, 201);
    }
    assert_eq!(one.link.seen(Operation::Probe), 1);
}

/// A response takes longer than `store_timeout` while others are answered: it is large, and the
/// store is not down.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_among_others_does_not_open_it() {
    let world = World::default();
    let one = world.replica();
    one.link.next(Operation::Claim, Fault::Delay(millis(300)));
    let slow = one.spawn_with("/closed", "slow", "x");
    sleep(millis(50)).await;
    assert_eq!(one.send("/closed", "x").await.outcome(), (201, false));
    assert_eq!(slow.await.unwrap().status, 503);
    assert_eq!(one.link.seen(Operation::Probe), 0);
    assert!(one.runtime.health().await.is_guarded());
}
