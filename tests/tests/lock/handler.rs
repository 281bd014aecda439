//! A cache and a lock under a handler: what clients see.

use std::{collections::BTreeMap, time::Duration};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use futures_util::future::join_all;
use idempotent_runtime::{
    Caller, IdempotencyContext, IdempotencyRuntime, OnStoreFailure, Settings, idempotent,
    lock::{DistributedLock, InProcessLock},
    store::LockedStore,
};
use idempotent_tests::{
    http::{Reply, Runs, keyed, send},
    locked::{MapCache, MoodyLock},
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{Instant, sleep};

/// Runs for as many milliseconds as the body says, or fails.
#[idempotent]
async fn create(
    State(runs): State<Runs>,
    context: IdempotencyContext,
    body: String,
) -> (StatusCode, String) {
    let run = runs.add();
    sleep(Duration::from_millis(body.parse().unwrap_or_default())).await;
    let status = if body == "fail" {
        StatusCode::BAD_GATEWAY
    } else {
        StatusCode::CREATED
    };
    (status, format!("run {run} guarded {}", context.guarded()))
}

/// Two replicas on one cache and one lock.
struct Service {
    cache: MapCache,
    lock: MoodyLock<InProcessLock>,
    replicas: [Router; 2],
    runs: Runs,
}

impl Service {
    fn new(on_store_failure: OnStoreFailure) -> Self {
        let cache = MapCache::default();
        let lock = MoodyLock::new(InProcessLock::new());
        let runs = Runs::default();
        let replica = || {
            let settings = Settings::default().on_store_failure(on_store_failure);
            let runtime = IdempotencyRuntime::builder()
                .caller(Caller::shared())
                .settings(settings)
                .store(LockedStore::new(cache.clone()).lock(lock.clone()))
                .build()
                .unwrap();
            Router::new()
                .route("/", post(create))
                .with_state(runs.clone())
                .layer(Extension(runtime))
        };
        Self {
            replicas: [replica(), replica()],
            cache,
            lock,
            runs,
        }
    }

    async fn send(&self, replica: usize, body: &'static str) -> Reply {
        send(&self.replicas[replica], keyed("/", "k", body)).await
    }
}

#[tokio::test(start_paused = true)]
async fn duplicates_on_every_replica_replay() {
    let it = Service::new(OnStoreFailure::Open);
    let first = it.send(0, "0").await;
    assert_eq!(first.outcome(), (201, false));
    assert_eq!(first.text(), "run 1 guarded true");
    for replica in [0, 1, 1, 0] {
        let again = it.send(replica, "0").await;
        assert_eq!(again.outcome(), (201, true));
        assert_eq!(again.body, first.body);
        let other = it.send(replica, "1").await;
        assert_eq!(other.problem(), "urn:idempotency:key-reused");
    }
    assert_eq!(it.runs.count(), 1);
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_burst_over_the_replicas_runs_once() {
    let it = Service::new(OnStoreFailure::Open);
    let replies = join_all((0..50).map(|n| it.send(n % 2, "1000"))).await;
    let replays = replies.iter().filter(|reply| reply.is_replay()).count();
    assert_eq!((it.runs.count(), replays), (1, 49));
    for reply in replies {
        assert_eq!(reply.text(), "run 1 guarded true");
    }
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_gives_the_lock_up() {
    let it = Service::new(OnStoreFailure::Open);
    for run in 1..=3 {
        assert_eq!(it.send(0, "fail").await.status, StatusCode::BAD_GATEWAY);
        assert_eq!(it.runs.count(), run);
        assert!(it.lock.lock.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_is_waited_for_and_is_no_fault() {
    let name = name().await;
    // Nobody's run: whoever holds it ends in four seconds, or in a minute.
    for (held_for, outcome, waited) in [(4, (201, false), 4), (60, (409, false), 5)] {
        let it = Service::new(OnStoreFailure::Open);
        let held = it.lock.lock.clone();
        let ttl = Duration::from_secs(held_for);
        let guard = held.try_acquire(&name, ttl, Duration::ZERO).await;
        let began = Instant::now();
        let reply = it.send(1, "0").await;
        assert_eq!(reply.outcome(), outcome);
        assert_eq!(began.elapsed().as_secs(), waited);
        if outcome.0 == 409 {
            assert_eq!(reply.problem(), "urn:idempotency:in-flight");
            assert_eq!(reply.headers["retry-after"], "1");
        }
        drop(guard);
    }
    let it = Service::new(OnStoreFailure::Open);
    // The first still runs, on another replica: the duplicate has its answer as soon as it ends.
    let (first, second) = tokio::join!(it.send(0, "3000"), async {
        sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        (it.send(1, "3000").await, began.elapsed())
    });
    assert_eq!(first.outcome(), (201, false));
    assert_eq!(second.0.outcome(), (201, true));
    assert!(second.1 < Duration::from_millis(3200), "{:?}", second.1);
    assert_eq!(it.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn b009_a_handler_of_many_leases_stays_exclusive() {
    let it = Service::new(OnStoreFailure::Open);
    // The lease is thirty seconds.
    let (first, duplicates) = tokio::join!(it.send(0, "300000"), async {
        let mut outcomes = Vec::new();
        for _ in 0..28 {
            sleep(Duration::from_secs(5)).await;
            outcomes.push(it.send(1, "300000").await.outcome());
        }
        outcomes
    });
    assert_eq!(first.outcome(), (201, false));
    assert_eq!(duplicates, [(409, false); 28]);
    assert_eq!(it.send(1, "300000").await.outcome(), (201, true));
    assert_eq!(it.runs.count(), 1);
    assert!(it.lock.lock.is_empty());
}

/// The name under which the one key of these tests is locked: that of its record.
async fn name() -> String {
    let it = Service::new(OnStoreFailure::Open);
    it.send(0, "0").await;
    it.cache.keys().pop().expect("a record")
}

/// What degraded, by operation, in a service that is made ill in one way.
fn degraded(
    on_store_failure: OnStoreFailure,
    ill: impl Fn(&Service),
    expected: (u16, usize),
) -> BTreeMap<String, u64> {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let it = Service::new(on_store_failure);
            ill(&it);
            let reply = it.send(0, "0").await;
            assert_eq!((reply.status.as_u16(), it.runs.count()), expected);
            if expected.0 == 503 {
                assert_eq!(reply.problem(), "urn:idempotency:store-unavailable");
                assert_eq!(reply.headers["retry-after"], "1");
            }
            assert!(it.lock.lock.is_empty() || it.cache.writes.asked() > 0);
        });
    });
    counted(&seen)
}

fn counted(seen: &Snapshotter) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for (key, _, _, value) in seen.snapshot().into_vec() {
        if key.key().name() != "idempotency.degraded" {
            continue;
        }
        if let (Some(label), DebugValue::Counter(n @ 1..)) = (key.key().labels().next(), value) {
            counted.insert(label.value().to_owned(), n);
        }
    }
    counted
}

#[test]
fn cache_and_lock_faults_are_counted_apart() {
    let (open, closed) = (OnStoreFailure::Open, OnStoreFailure::Closed);
    let ran = (201, 1);
    let refused = (503, 0);
    let read = |it: &Service| it.cache.reads.failing();
    let lock = |it: &Service| it.lock.acquires.failing();
    let write = |it: &Service| it.cache.writes.failing();

    for (policy, outcome) in [(open, ran), (closed, refused)] {
        let seen = degraded(policy, read, outcome);
        assert!(seen["claim"] >= 1 && seen["read"] >= 1, "{seen:?}");
        assert!(
            !seen.contains_key("lock") && !seen.contains_key("write"),
            "{seen:?}"
        );

        let seen = degraded(policy, lock, outcome);
        assert!(seen["claim"] >= 1 && seen["lock"] >= 1, "{seen:?}");
        assert!(
            !seen.contains_key("read") && !seen.contains_key("write"),
            "{seen:?}"
        );

        // After the run nothing changes the response.
        let seen = degraded(policy, write, ran);
        assert!(seen["complete"] >= 1 && seen["write"] >= 1, "{seen:?}");
        assert!(
            !seen.contains_key("read") && !seen.contains_key("lock"),
            "{seen:?}"
        );

        // What never answers is counted as what it was asked for.
        let seen = degraded(policy, |it| it.cache.reads.hanging(), outcome);
        assert!(seen["claim"] >= 1 && seen["read"] >= 1, "{seen:?}");
        assert!(
            !seen.contains_key("lock") && !seen.contains_key("write"),
            "{seen:?}"
        );
        let seen = degraded(policy, |it| it.lock.acquires.hanging(), outcome);
        assert!(seen["claim"] >= 1 && seen["lock"] >= 1, "{seen:?}");

        let seen = degraded(policy, |_| {}, ran);
        assert!(seen.is_empty(), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_or_a_lock_that_hangs_costs_a_bounded_time() {
    let hangs: [fn(&Service); 2] = [
        |it| it.cache.reads.hanging(),
        |it| it.lock.acquires.hanging(),
    ];
    for hang in hangs {
        let it = Service::new(OnStoreFailure::Open);
        hang(&it);
        let began = Instant::now();
        let reply = it.send(0, "0").await;
        assert_eq!(reply.text(), "run 1 guarded false");
        assert!(
            began.elapsed() <= Duration::from_millis(310),
            "{:?}",
            began.elapsed()
        );
        it.cache.reads.well();
        it.lock.acquires.well();
        assert!(it.lock.lock.is_empty());
    }
}
