//! K04: a store that fails before, during or after the run.

use std::time::Duration;

use axum::{
    Router,
    extract::State,
    http::{HeaderName, StatusCode, header},
    routing::post,
};
use idempotent_runtime::{Caller, IdempotencyRuntime, RedisStore, StoreHealth, idempotent};
use idempotent_tests::{
    fleet::{Fleet, NAMESPACE},
    http::{Runs, keyed, send, until},
    proxy::Then,
};
use tokio::time::{Instant, sleep};

use super::{millis, works};

#[tokio::test(flavor = "multi_thread")]
async fn b023_a_completion_whose_reply_is_lost_is_no_second_run() {
    for then in [Then::Close, Then::Hang] {
        let (fleet, runs) = (Fleet::start(), Runs::default());
        let [one, two] = fleet.two(|| works(&runs)).await;
        one.link.lose_reply_to(b"EVALSHA", then);
        let first = one.send("/", "k", "0").await;
        assert_eq!(first.outcome(), (201, false));
        one.link.pass();
        for member in [&one, &two] {
            let again = member.send("/", "k", "0").await;
            assert_eq!((again.outcome(), &again.body), ((201, true), &first.body));
        }
        one.runtime.drain(Duration::from_secs(5)).await.unwrap();
        assert_eq!((runs.count(), fleet.keys().len()), (1, 1));
        assert_eq!(fleet.endless_keys(), [""; 0]);
    }
}

/// The reply to the claim is lost as well: its request runs, and its report finds the claim.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_is_lost_is_completed_all_the_same() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    one.link.lose_reply_to(b"SET", Then::Close);
    let first = one.send("/", "k", "0").await;
    assert_eq!(first.outcome(), (201, false));
    one.runtime.drain(Duration::from_secs(5)).await.unwrap();
    let again = two.send("/", "k", "0").await;
    assert_eq!((again.outcome(), again.body), ((201, true), first.body));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b024_an_outage_costs_hardly_any_time() {
    for black_hole in [false, true] {
        let (fleet, runs) = (Fleet::start(), Runs::default());
        let one = fleet.member(works(&runs)).await;
        if black_hole {
            one.link.stall();
        } else {
            one.link.cut();
        }
        let mut times = Vec::new();
        for n in 0..50 {
            let began = Instant::now();
            let reply = one.send("/", &format!("k{n}"), "0").await;
            times.push(began.elapsed());
            assert_eq!(reply.outcome(), (201, false));
        }
        let first = times.remove(0);
        assert!(first < millis(300), "{first:?}");
        times.sort_unstable();
        assert!(times[40] < millis(5), "{black_hole}: {times:?}");
        assert!(!one.runtime.health().await.is_guarded());
        one.link.pass();
        let began = Instant::now();
        one.until_guarded().await;
        assert!(began.elapsed() < millis(2000), "{:?}", began.elapsed());
        // What ran meanwhile is told.
        one.runtime.drain(Duration::from_secs(10)).await.unwrap();
        let two = fleet.member(works(&runs)).await;
        assert_eq!(two.send("/", "k7", "0").await.outcome(), (201, true));
        assert_eq!(runs.count(), 50);
    }
}

/// The connection stays open and carries nothing; new ones work.
#[tokio::test(flavor = "multi_thread")]
async fn a_black_holed_connection_is_replaced() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let one = fleet.member(works(&runs)).await;
    assert_eq!(one.send("/", "before", "0").await.outcome(), (201, false));
    one.link.strand();
    let began = Instant::now();
    assert_eq!(one.send("/", "during", "0").await.outcome(), (201, false));
    one.until_guarded().await;
    assert!(began.elapsed() < millis(2000), "{:?}", began.elapsed());
    one.runtime.drain(Duration::from_secs(5)).await.unwrap();
    assert_eq!(fleet.keys().len(), 2);
}

#[idempotent]
async fn large(State(runs): State<Runs>) -> (StatusCode, [(HeaderName, &'static str); 1], Vec<u8>) {
    let _ = runs.add();
    sleep(millis(300)).await;
    let location = [(header::LOCATION, "/orders/1")];
    (StatusCode::CREATED, location, vec![b'x'; 65_536])
}

#[tokio::test(flavor = "multi_thread")]
async fn b025_a_server_that_dies_during_the_run_changes_nothing_for_the_client() {
    let (mut fleet, runs) = (Fleet::start(), Runs::default());
    let routes = Router::new().route("/", post(large));
    let one = fleet.member(routes.with_state(runs.clone())).await;
    let reply = one.spawn("/", "k", "");
    until(|| runs.count() == 1).await;
    let began = Instant::now();
    fleet.server.kill();
    let reply = reply.await.unwrap();
    assert!(began.elapsed() < millis(1300), "{:?}", began.elapsed());
    assert_eq!((reply.outcome(), reply.body.len()), ((201, false), 65_536));
    assert_eq!(reply.headers["location"], "/orders/1");
    // The server comes back without its data, and is told.
    fleet.server.restart_empty();
    one.runtime.drain(Duration::from_secs(10)).await.unwrap();
    let again = one.send("/", "k", "").await;
    assert_eq!((again.outcome(), again.body), ((201, true), reply.body));
    assert_eq!(runs.count(), 1);
}

#[idempotent(required)]
async fn pay(State(runs): State<Runs>, _body: String) -> String {
    runs.add().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_refuses_while_the_server_is_down_and_runs_afterwards() {
    let (mut fleet, runs) = (Fleet::start(), Runs::default());
    let routes = Router::new().route("/", post(pay));
    let one = fleet.member(routes.with_state(runs.clone())).await;
    fleet.server.kill();
    for _ in 0..10 {
        let reply = one.send("/", "k", "").await;
        assert_eq!(reply.problem(), "urn:idempotency:store-unavailable");
        assert_eq!(reply.headers["retry-after"], "1");
    }
    let health = one.runtime.health().await;
    assert!(
        matches!(health.store, StoreHealth::Down { .. }),
        "{health:?}"
    );
    fleet.server.restart_empty();
    one.until_guarded().await;
    assert_eq!(one.send("/", "k", "").await.outcome(), (200, false));
    assert_eq!(runs.count(), 1);
}

/// A service starts without its server, runs unguarded, and finds it later.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_missing_at_the_start_is_found_later() {
    let (mut fleet, runs) = (Fleet::start(), Runs::default());
    fleet.server.kill();
    let store = RedisStore::connect(&fleet.server.url(), NAMESPACE).await;
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .store(store.unwrap())
        .build()
        .unwrap();
    let app = works(&runs).layer(axum::Extension(runtime.clone()));
    assert!(!runtime.health().await.is_guarded());
    assert_eq!(
        send(&app, keyed("/", "k", "0")).await.outcome(),
        (201, false)
    );
    fleet.server.restart_empty();
    runtime.drain(Duration::from_secs(10)).await.unwrap();
    assert!(runtime.health().await.is_guarded());
    let two = fleet.member(works(&runs)).await;
    let again = two.send("/", "k", "0").await;
    assert_eq!(again.status, 201);
}

/// B070: a foreign value is under one key; a hundred others are asked for at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn b070_a_foreign_value_is_refused_and_disturbs_nobody() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let one = fleet.member(works(&runs)).await;
    assert_eq!(one.send("/", "bad", "0").await.outcome(), (201, false));
    let key = fleet.keys().remove(0);
    drop(fleet.server.cli(&["DEL", &key]));
    drop(fleet.server.cli(&["RPUSH", &key, "somebody", "else"]));
    let others: Vec<_> = (0..100)
        .map(|n| one.spawn("/", &format!("k{n}"), "0"))
        .collect();
    let bad = one.send("/", "bad", "0").await;
    assert_eq!(bad.problem(), "urn:idempotency:store-unavailable");
    let mut bodies = Vec::new();
    for other in others {
        let reply = other.await.unwrap();
        assert_eq!(reply.outcome(), (201, false));
        bodies.push(reply.text());
    }
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!((bodies.len(), runs.count()), (100, 101));
    assert_eq!(fleet.server.cli(&["--raw", "LLEN", &key]).trim(), "2");
}
