//! K10 and K11: how a duplicate learns the outcome, and many at once.

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::{
    fleet::Fleet,
    http::{Runs, until},
};
use tokio::time::{Instant, sleep};

use super::{millis, works};

#[tokio::test(flavor = "multi_thread")]
async fn b062_those_who_wait_are_answered_as_soon_as_it_ends() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let began = Instant::now();
    let first = one.spawn("/", "k", "1000");
    sleep(millis(100)).await;
    let waiting: Vec<_> = (0..10).map(|_| two.spawn("/", "k", "1000")).collect();
    let body = first.await.unwrap().body;
    for reply in waiting {
        let reply = reply.await.unwrap();
        assert_eq!((reply.outcome(), &reply.body), ((201, true), &body));
    }
    let took = began.elapsed();
    assert!((millis(1000)..millis(1300)).contains(&took), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn b063_those_who_wait_give_up_in_time() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let first = one.spawn("/", "k", "20000");
    until(|| runs.count() == 1).await;
    let began = Instant::now();
    let asked = two.link.round_trips();
    let waiting: Vec<_> = (0..50).map(|_| two.spawn("/", "k", "20000")).collect();
    for reply in waiting {
        let reply = reply.await.unwrap();
        assert_eq!(reply.problem(), "urn:idempotency:in-flight");
        let waited = began.elapsed();
        assert!((millis(5000)..millis(5700)).contains(&waited), "{waited:?}");
    }
    let asked = two.link.round_trips() - asked;
    assert!(asked < 60, "{asked} round trips of fifty who waited");
    assert_eq!(runs.count(), 1);
    first.abort();
}

/// Fails after a second, then succeeds after a tenth.
#[idempotent]
async fn recovers(State(runs): State<Runs>, _body: String) -> (StatusCode, String) {
    let run = runs.add();
    if run == 1 {
        sleep(millis(1000)).await;
        return (StatusCode::INTERNAL_SERVER_ERROR, String::new());
    }
    sleep(millis(100)).await;
    (StatusCode::CREATED, format!("run {run}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn b064_after_a_failure_exactly_one_of_those_who_wait_runs() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(recovers));
        routes.with_state(runs.clone())
    };
    let members = fleet.two(routes).await;
    let first = members[0].spawn("/", "k", "");
    until(|| runs.count() == 1).await;
    let waiting: Vec<_> = (0..10)
        .map(|n| members[n % 2].spawn("/", "k", ""))
        .collect();
    assert_eq!(first.await.unwrap().status, 500);
    let mut replayed = 0;
    for reply in waiting {
        let reply = reply.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.text().as_str()),
            (201, "run 2")
        );
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((runs.count(), replayed), (2, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn b067_different_keys_do_not_wait_for_each_other() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let members = fleet.two(|| works(&runs)).await;
    let began = Instant::now();
    let replies: Vec<_> = (0..50)
        .map(|n| members[n % 2].spawn("/", &format!("k{n}"), "500"))
        .collect();
    for reply in replies {
        assert_eq!(reply.await.unwrap().outcome(), (201, false));
    }
    assert!(began.elapsed() < millis(1500), "{:?}", began.elapsed());
}

/// Eight duplicates on two replicas: what they cost at the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_costs_few_round_trips() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let members = fleet.two(|| works(&runs)).await;
    for member in &members {
        assert_eq!(member.send("/", "warm", "0").await.status, 201);
    }
    let count = || members[0].link.round_trips() + members[1].link.round_trips();
    // The connection that waiters are woken by is opened once.
    let first = members[0].spawn("/", "opened", "100");
    sleep(millis(20)).await;
    assert_eq!(members[1].send("/", "opened", "100").await.status, 201);
    assert_eq!(first.await.unwrap().status, 201);
    let before = count();
    let replies: Vec<_> = (0..8)
        .map(|n| members[n % 2].spawn("/", "k", "200"))
        .collect();
    for reply in replies {
        assert_eq!(reply.await.unwrap().status, 201);
    }
    let spent = count() - before;
    assert!(spent <= 10, "{spent} round trips");
}
