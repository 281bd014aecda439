//! What a process knows by itself: its duplicates follow its first request, without the store.

use idempotent_runtime::{
    Settings,
    testing::{Fault, Operation},
};
use idempotent_tests::{
    http::{hang_up, keyed, until},
    replica::World,
};
use tokio::time::sleep;

use super::millis;

#[tokio::test(start_paused = true)]
async fn duplicates_of_one_process_ask_the_store_once() {
    let world = World::default();
    let one = world.replica().plan(1000, 201);
    let replies: Vec<_> = (0..20).map(|_| one.spawn("/", "x")).collect();
    let mut replayed = 0;
    for reply in replies {
        let reply = reply.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.text().as_str()),
            (201, "run 1")
        );
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((world.runs.count(), replayed), (1, 19));
    assert_eq!(one.link.seen(Operation::Claim), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_waits_for_another_has_one_request_that_asks() {
    let world = World::default();
    let (one, two) = (world.replica().plan(1000, 201), world.replica());
    let first = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    let replies: Vec<_> = (0..20).map(|_| two.spawn("/", "x")).collect();
    for reply in replies {
        assert_eq!(reply.await.unwrap().outcome(), (201, true));
    }
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    // One asks, and then polls with longer and longer pauses.
    assert!(
        two.link.seen(Operation::Claim) <= 12,
        "{}",
        two.link.seen(Operation::Claim)
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_one_of_those_who_wait_runs() {
    let world = World::default();
    let one = world.replica().plan(1000, 502).plan(500, 201);
    let first = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    let replies: Vec<_> = (0..10).map(|_| one.spawn("/", "x")).collect();
    assert_eq!(first.await.unwrap().status, 502);
    let mut replayed = 0;
    for reply in replies {
        let reply = reply.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.text().as_str()),
            (201, "run 2")
        );
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((world.runs.count(), replayed), (2, 9));
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_go_on_when_the_one_before_them_hangs_up() {
    let world = World::default();
    let (one, two) = (world.replica().plan(2000, 201), world.replica());
    let first = one.spawn("/", "x");
    until(|| world.runs.count() == 1).await;
    let leaving = two.app.clone();
    let leaving = tokio::spawn(async move {
        hang_up(&leaving, keyed("/", "k", "x"), millis(500)).await;
    });
    sleep(millis(100)).await;
    let staying = two.spawn("/", "x");
    leaving.await.unwrap();
    assert_eq!(staying.await.unwrap().outcome(), (201, true));
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    assert_eq!(world.runs.count(), 1);
}

/// The first request of a process learns that the key is another body's; one that comes with that
/// body meanwhile is answered from the record.
#[tokio::test(start_paused = true)]
async fn a_request_is_not_judged_by_one_that_is_still_asking() {
    let world = World::default();
    let (one, two) = (world.replica(), world.replica());
    let first = one.send("/", "x").await;
    two.link.next(Operation::Claim, Fault::Delay(millis(50)));
    let wrong = two.spawn("/", "another body");
    sleep(millis(10)).await;
    let right = two.send("/", "x").await;
    assert_eq!((right.outcome(), right.body), ((201, true), first.body));
    assert_eq!(wrong.await.unwrap().problem(), "urn:idempotency:key-reused");
}

#[tokio::test(start_paused = true)]
async fn an_unguarded_failure_lets_a_retry_run() {
    let world = World::default();
    let one = world.replica().plan(100, 502);
    one.link.down(Fault::Fail);
    assert_eq!(one.send("/", "x").await.status, 502);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    assert_eq!(one.send("/", "x").await.outcome(), (201, true));
    assert_eq!(world.runs.count(), 2);
}

/// Without patience too, a retry of a finished request is answered while another is asking.
#[tokio::test(start_paused = true)]
async fn who_does_not_wait_learns_what_the_first_of_its_process_learns() {
    let world = World::default();
    let settings = Settings::default().wait(millis(0));
    let (one, two) = (world.replica(), world.replica_with(settings));
    let first = one.send("/", "x").await;
    for _ in 0..2 {
        two.link.next(Operation::Claim, Fault::Delay(millis(20)));
    }
    let replies: Vec<_> = (0..5).map(|_| two.spawn("/", "x")).collect();
    let other = two.spawn("/", "another body");
    for reply in replies {
        let reply = reply.await.unwrap();
        assert_eq!((reply.outcome(), &reply.body), ((201, true), &first.body));
    }
    assert_eq!(other.await.unwrap().problem(), "urn:idempotency:key-reused");
}
