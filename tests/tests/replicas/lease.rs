//! K02: a claim belongs to its holder, for as long as the run takes.

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::Settings;
use idempotent_runtime::{IdempotencyContext, idempotent};
use idempotent_tests::{
    fleet::Fleet,
    http::{Runs, until},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::{millis, works};

fn second() -> Settings {
    Settings::default().lease(millis(1000))
}

/// Answers 500 after two seconds.
#[idempotent]
async fn fails(State(runs): State<Runs>, _body: String) -> StatusCode {
    let _ = runs.add();
    sleep(millis(2000)).await;
    StatusCode::INTERNAL_SERVER_ERROR
}

/// A's link is cut from 0.1 s to 1.9 s; B takes over at 1.5 s; A fails and releases; C comes.
#[tokio::test(flavor = "multi_thread")]
async fn b008_a_release_frees_only_its_own_claim() {
    let (fleet, runs) = (Fleet::with(second()), Runs::default());
    let failing = Router::new().route("/", post(fails));
    let one = fleet.member(failing.with_state(runs.clone())).await;
    let two = fleet.member(works(&runs)).await;
    let began = Instant::now();
    let at = async |ms| sleep_until(began + millis(ms)).await;
    let a = one.spawn("/", "k", "2000");
    at(100).await;
    one.link.stall();
    at(1500).await;
    let b = two.spawn("/", "k", "2000");
    at(1900).await;
    one.link.pass();
    assert_eq!(a.await.unwrap().status, 500);
    at(2200).await;
    let c = two.spawn("/", "k", "2000");
    let (b, c) = (b.await.unwrap(), c.await.unwrap());
    assert_eq!((b.outcome(), c.outcome()), ((201, false), (201, true)));
    assert_eq!((runs.count(), b.body), (2, c.body));
}

/// Lease 1 s, handler 6 s.
#[tokio::test(flavor = "multi_thread")]
async fn b009_a_handler_may_take_longer_than_its_lease() {
    let (fleet, runs) = (Fleet::with(second()), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let began = Instant::now();
    let first = one.spawn("/", "k", "6000");
    let mut duplicates = Vec::new();
    for at in [200, 2000, 4000] {
        sleep_until(began + millis(at)).await;
        duplicates.push(two.spawn("/", "k", "6000"));
        // Its own process waits in the same way.
        duplicates.push(one.spawn("/", "k", "6000"));
    }
    for early in duplicates.drain(..2) {
        assert_eq!(early.await.unwrap().problem(), "urn:idempotency:in-flight");
    }
    let waited = began.elapsed();
    assert!((millis(5200)..millis(5800)).contains(&waited), "{waited:?}");
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    for late in duplicates {
        assert_eq!(late.await.unwrap().outcome(), (201, true));
    }
    assert!(began.elapsed() < millis(6800), "{:?}", began.elapsed());
    assert_eq!(runs.count(), 1);
}

/// A hundred handlers of ten times their lease, asked for by another replica all the while.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_handlers_of_ten_leases_are_never_overtaken() {
    let settings = second().wait(millis(0));
    let (fleet, runs) = (Fleet::with(settings), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let keys: Vec<_> = (0..100).map(|n| format!("k{n}")).collect();
    let first: Vec<_> = keys
        .iter()
        .map(|key| one.spawn("/", key, "10000"))
        .collect();
    until(|| runs.count() == 100).await;
    let began = Instant::now();
    for turn in 1..19 {
        sleep_until(began + millis(turn * 500)).await;
        let replies: Vec<_> = keys
            .iter()
            .map(|key| two.spawn("/", key, "10000"))
            .collect();
        for reply in replies {
            assert_eq!(reply.await.unwrap().status, 409);
        }
    }
    for first in first {
        assert_eq!(first.await.unwrap().outcome(), (201, false));
    }
    assert_eq!(runs.count(), 100);
    assert_eq!(fleet.endless_keys(), [""; 0]);
}

/// Says whether its lease was lost.
#[idempotent]
async fn tells(State(runs): State<Runs>, context: IdempotencyContext, _body: String) -> String {
    let _ = runs.add();
    sleep(millis(2500)).await;
    context.lease_lost().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_is_cut_off_learns_that_its_lease_is_lost() {
    let (fleet, runs) = (Fleet::with(second()), Runs::default());
    let routes = || {
        Router::new()
            .route("/", post(tells))
            .with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    let cut = one.spawn("/", "cut", "");
    let kept = two.spawn("/", "kept", "");
    until(|| runs.count() == 2).await;
    one.link.cut();
    sleep(millis(1500)).await;
    one.link.pass();
    assert_eq!(cut.await.unwrap().text(), "true");
    assert_eq!(kept.await.unwrap().text(), "false");
}
