//! A cache and a lock in Redis as a store.

use std::{error::Error as _, iter::successors, time::Duration};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use futures_util::future::join_all;
use idempotent_runtime::{
    Caller, IdempotencyContext, IdempotencyRuntime, Settings, idempotent,
    store::{
        Cache as _, ClaimOutcome, CompleteOutcome, LockedStore, RedisCache, RenewOutcome,
        Store as _, StoreErrorKind, Token,
    },
    testing,
};
use idempotent_tests::{
    http::{Runs, keyed, send},
    proxy::Proxy,
    redis::{RedisCluster, RedisSentinel, RedisServer},
    store::{HOUR, claim, key, record},
};
use tokio::time::sleep;

async fn store(url: &str) -> LockedStore<RedisCache> {
    LockedStore::new(RedisCache::connect(url, "tests").await.expect("a cache"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_cache_and_lock_by_the_same_contract() {
    let server = RedisServer::start();
    let url = server.url();
    testing::contract(async || store(&url).await).await;
    let keys = server.cli(&["KEYS", "*"]);
    for name in keys.lines() {
        let left: i64 = server.cli(&["PTTL", name]).parse().expect("a number");
        assert_ne!(left, -1, "{name} has no end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_cache_and_lock_on_a_cluster_by_the_same_contract() {
    let cluster = RedisCluster::start();
    let cache = RedisCache::connect_cluster(cluster.urls(), "tests").await;
    let cache = cache.expect("a cache");
    testing::contract(async || LockedStore::new(cache.clone())).await;
    let kept = |node: &RedisServer| node.cli(&["DBSIZE"]) != "0";
    assert!(cluster.nodes().iter().all(kept), "on all nodes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_cache_and_lock_through_sentinels_by_the_same_contract() {
    let sentinel = RedisSentinel::start();
    let cache = RedisCache::connect_sentinel(sentinel.urls(), sentinel.name(), "tests").await;
    let cache = cache.expect("a cache");
    testing::contract(async || LockedStore::new(cache.clone())).await;

    sentinel.fail_over();
    let probed = cache.probe().await;
    probed.expect("the new master is found");
    testing::contract(async || LockedStore::new(cache.clone())).await;
}

#[tokio::test]
async fn a_first_request_takes_six_round_trips_and_a_replay_one() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store(&format!("redis://{}", proxy.address())).await;
    let trips = |before: usize| proxy.round_trips() - before;
    // The server is told once what the script of a release is.
    let first = Token::unique();
    let claimed = store.claim(&key(2), claim(first)).answer().await;
    claimed.expect("well");
    let released = store.release(&key(2), first).answer().await;
    released.expect("well");

    let token = Token::unique();

    let before = proxy.round_trips();
    let claimed = store.claim(&key(1), claim(token)).answer().await;
    assert_eq!(claimed.expect("well"), ClaimOutcome::Claimed);
    assert_eq!(trips(before), 3, "look, lock, look again");
    let completed = store.complete(&key(1), token, record(10), HOUR);
    completed.answer().await.expect("well");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(trips(before), 6, "look, set; unlock in the background");

    let before = proxy.round_trips();
    let found = store.claim(&key(1), claim(Token::unique())).answer().await;
    assert_eq!(found.expect("well"), ClaimOutcome::Completed(record(10)));
    assert_eq!(trips(before), 1);
    assert_eq!(server.cli(&["DBSIZE"]), "1", "the record");
}

#[tokio::test]
async fn what_another_program_has_put_there_is_unreadable_and_stays() {
    let server = RedisServer::start();
    let store = store(&server.url()).await;
    let stored = format!("tests:cache:{}", key(1));
    for put in [&["RPUSH", &stored, "x"][..], &["SET", &stored, "42"]] {
        server.cli(&["DEL", &stored]);
        server.cli(put);
        let before = server.cli(&["TYPE", &stored]);
        let token = Token::unique();
        let claimed = store.claim(&key(1), claim(token)).answer().await;
        let error = claimed.expect_err("unreadable");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
        let completed = store.complete(&key(1), token, record(10), HOUR);
        let error = completed.answer().await.expect_err("unreadable");
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
        assert_eq!(server.cli(&["TYPE", &stored]), before);
        assert_eq!(server.cli(&["DBSIZE"]), "1");
    }
}

#[tokio::test]
async fn what_is_no_lock_is_unreadable_and_stays() {
    let server = RedisServer::start();
    let store = store(&server.url()).await;
    server.cli(&["RPUSH", &format!("tests:lock:{}", key(1)), "x"]);
    let claimed = store.claim(&key(1), claim(Token::unique())).answer().await;
    let error = claimed.expect_err("unreadable");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    assert_eq!(server.cli(&["DBSIZE"]), "1");
}

/// Evicts nothing and takes nothing more.
fn fill(server: &RedisServer) {
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
}

#[tokio::test]
async fn a_full_server_replays_but_takes_no_new_claims() {
    let server = RedisServer::start();
    let store = store(&server.url()).await;
    let (held, finished) = (Token::unique(), Token::unique());
    let claimed = store.claim(&key(1), claim(held)).answer().await;
    assert_eq!(claimed.expect("well"), ClaimOutcome::Claimed);
    let completed = store.complete(&key(2), finished, record(10), HOUR);
    completed.answer().await.expect("well");
    fill(&server);

    let other = claim(Token::unique());
    let found = store.claim(&key(2), other).answer().await;
    assert_eq!(found.expect("a read"), ClaimOutcome::Completed(record(10)));
    let found = store.claim(&key(1), other).answer().await;
    let found = found.expect("a lock that is held");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
    let renewed = store.renew(&key(1), claim(held)).answer().await;
    assert_eq!(renewed.expect("nothing new"), RenewOutcome::Renewed);

    let claimed = store.claim(&key(3), other).answer().await;
    let completed = store.complete(&key(1), held, record(10), HOUR);
    for error in [
        claimed.expect_err("no room"),
        completed.answer().await.expect_err("no room"),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
        let causes = successors(error.source(), |&error| error.source());
        let why = causes
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        assert!(why.contains("maxmemory"), "{error}: {why}");
    }
    let found = store.claim(&key(1), other).answer().await;
    let found = found.expect("a lock that is held");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let completed = store.complete(&key(1), held, record(10), HOUR);
    let completed = completed.answer().await.expect("room again");
    assert_eq!(completed, CompleteOutcome::Stored);
}

#[tokio::test]
async fn a_cache_keeps_bytes_until_their_expiry() {
    let server = RedisServer::start();
    let cache = RedisCache::connect(&server.url(), "tests").await;
    let cache = cache.expect("a cache");
    assert_eq!(cache.get("k").await.expect("well"), None);
    let all: Vec<u8> = (0..=255).collect();
    let expiry = Duration::from_millis(200);
    cache
        .set("k", all.clone().into(), expiry)
        .await
        .expect("well");
    assert_eq!(cache.get("k").await.expect("well").as_deref(), Some(&*all));
    assert!(
        server
            .cli(&["PTTL", "tests:cache:k"])
            .parse::<i64>()
            .expect("a number")
            > 0
    );
    sleep(expiry).await;
    assert_eq!(cache.get("k").await.expect("well"), None);
    cache
        .set("k", all.into(), Duration::ZERO)
        .await
        .expect("well");
    sleep(Duration::from_millis(20)).await;
    assert_eq!(cache.get("k").await.expect("well"), None);
}

/// Runs for as many milliseconds as the body says.
#[idempotent]
async fn create(
    State(runs): State<Runs>,
    context: IdempotencyContext,
    body: String,
) -> (StatusCode, String) {
    let run = runs.add();
    sleep(Duration::from_millis(body.parse().unwrap_or_default())).await;
    (
        StatusCode::CREATED,
        format!("run {run} guarded {}", context.guarded()),
    )
}

#[idempotent(on_store_failure = "closed")]
async fn closed(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

async fn replica(url: &str, runs: &Runs) -> Router {
    let settings = Settings::default().store_timeout(Duration::from_secs(1));
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(settings)
        .store(store(url).await)
        .build()
        .unwrap();
    Router::new()
        .route("/", post(create))
        .route("/closed", post(closed))
        .with_state(runs.clone())
        .layer(Extension(runtime))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_over_two_replicas_runs_once() {
    let server = RedisServer::start();
    let runs = Runs::default();
    let replicas = [
        replica(&server.url(), &runs).await,
        replica(&server.url(), &runs).await,
    ];
    for round in 1..=5 {
        let name = format!("k{round}");
        let burst = (0..16).map(|n| send(&replicas[n % 2], keyed("/", &name, "100")));
        let replies = join_all(burst).await;
        let firsts = replies.iter().filter(|reply| !reply.is_replay()).count();
        assert_eq!((runs.count(), firsts), (round, 1));
        for reply in &replies {
            assert_eq!(reply.text(), format!("run {round} guarded true"));
        }
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.cli(&["DBSIZE"]), "5", "the records");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_broke_while_idle_is_no_outage() {
    let server = RedisServer::start();
    let runs = Runs::default();
    let app = replica(&server.url(), &runs).await;
    for round in 1..=3 {
        let name = format!("k{round}");
        let ran = send(&app, keyed("/", &name, "0")).await;
        assert_eq!(ran.text(), format!("run {round} guarded true"));
        sleep(Duration::from_millis(100)).await;
        server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        sleep(Duration::from_millis(100)).await;
        let replayed = send(&app, keyed("/", &name, "0")).await;
        assert_eq!(replayed.outcome(), (201, true));
        server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_is_no_outage_in_which_handlers_run_unguarded() {
    let server = RedisServer::start();
    let runs = Runs::default();
    let app = replica(&server.url(), &runs).await;
    let first = send(&app, keyed("/", "a", "0")).await;
    assert_eq!(first.text(), "run 1 guarded true");
    fill(&server);
    for _ in 0..3 {
        let refused = send(&app, keyed("/", "b", "0")).await;
        assert_eq!(refused.problem(), "urn:idempotency:store-unavailable");
        let replayed = send(&app, keyed("/", "a", "0")).await;
        assert_eq!(replayed.outcome(), (201, true));
    }
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let runs_now = send(&app, keyed("/", "b", "0")).await;
    assert_eq!(runs_now.text(), "run 2 guarded true");
    assert_eq!(runs.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_server_is_open_or_closed_and_comes_back() {
    let mut server = RedisServer::start();
    let runs = Runs::default();
    let app = replica(&server.url(), &runs).await;
    assert_eq!(
        send(&app, keyed("/", "a", "0")).await.text(),
        "run 1 guarded true"
    );
    server.kill();
    assert_eq!(
        send(&app, keyed("/", "b", "0")).await.text(),
        "run 2 guarded false"
    );
    let refused = send(&app, keyed("/closed", "c", "")).await;
    assert_eq!(refused.problem(), "urn:idempotency:store-unavailable");
    server.restart();
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(
        send(&app, keyed("/", "d", "0")).await.text(),
        "run 3 guarded true"
    );
    assert_eq!(
        send(&app, keyed("/", "d", "0")).await.outcome(),
        (201, true)
    );
    assert_eq!(runs.count(), 3);
}
