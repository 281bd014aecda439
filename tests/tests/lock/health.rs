//! A lock on another server than the cache: what the runtime knows of it.

use std::time::Duration;

use axum::{Extension, Router, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyContext, IdempotencyRuntime, Settings, StoreHealth, idempotent,
    lock::{InProcessLock, RedisLock},
    store::{LockedStore, RedisCache, Store as _, StoreErrorKind},
};
use idempotent_tests::{
    http::{Reply, keyed, send},
    locked::{MapCache, MoodyLock},
    redis::RedisServer,
};
use tokio::time::{Instant, sleep};

const TIMEOUT: Duration = Duration::from_millis(200);

#[idempotent]
async fn create(context: IdempotencyContext) -> String {
    format!("guarded {}", context.guarded())
}

struct Service {
    runtime: IdempotencyRuntime,
    app: Router,
    sent: usize,
}

impl Service {
    fn new(store: impl idempotent_runtime::store::Store) -> Self {
        let runtime = IdempotencyRuntime::builder()
            .caller(Caller::shared())
            .settings(Settings::default().store_timeout(TIMEOUT))
            .store(store)
            .build()
            .unwrap();
        let app = Router::new().route("/", post(create));
        Self {
            app: app.layer(Extension(runtime.clone())),
            runtime,
            sent: 0,
        }
    }

    /// A request of its own.
    async fn send(&mut self) -> Reply {
        self.sent += 1;
        send(&self.app, keyed("/", &format!("k{}", self.sent), "x")).await
    }

    async fn is_guarded(&self) -> bool {
        self.runtime.health().await.is_guarded()
    }

    async fn until_guarded(&self) {
        let began = Instant::now();
        while !self.is_guarded().await {
            assert!(began.elapsed() < Duration::from_secs(5));
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn moody() -> (MoodyLock<InProcessLock>, LockedStore<MapCache>) {
    let lock = MoodyLock::new(InProcessLock::new());
    let store = LockedStore::new(MapCache::default()).lock(lock.clone());
    (lock, store)
}

#[tokio::test(start_paused = true)]
async fn a_hung_lock_costs_one_request_its_timeout_and_no_other() {
    let (lock, store) = moody();
    let mut service = Service::new(store);
    for mood in lock.all() {
        mood.hanging();
    }
    let began = Instant::now();
    assert_eq!(service.send().await.text(), "guarded false");
    assert_eq!(began.elapsed(), TIMEOUT);
    for _ in 0..20 {
        sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        assert_eq!(service.send().await.text(), "guarded false");
        assert!(began.elapsed() < Duration::from_millis(1));
        let health = service.runtime.health().await;
        assert!(matches!(health.store, StoreHealth::Down { .. }));
    }
    for mood in lock.all() {
        mood.well();
    }
    service.until_guarded().await;
    assert_eq!(service.send().await.text(), "guarded true");
}

#[tokio::test(start_paused = true)]
async fn health_knows_of_a_lock_that_no_request_has_asked_yet() {
    for hangs in [false, true] {
        let (lock, store) = moody();
        let mut service = Service::new(store);
        assert_eq!(service.send().await.text(), "guarded true");
        assert!(service.is_guarded().await);
        for mood in lock.all() {
            if hangs {
                mood.hanging();
            } else {
                mood.failing();
            }
        }
        assert!(!service.is_guarded().await, "{hangs}");
        for mood in lock.all() {
            mood.well();
        }
        service.until_guarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_asks_cache_and_lock_at_once() {
    let (lock, store) = moody();
    store.probe().answer().await.expect("well");
    assert_eq!(lock.probes.asked(), 1);
    lock.probes.failing();
    let error = store.probe().answer().await.expect_err("the lock");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("lock"), "{error}");
    // Without any lock there is none to ask.
    let alone = LockedStore::new(MapCache::default());
    alone.probe().answer().await.expect("well");
}

#[tokio::test]
async fn a_redis_of_its_own_that_is_gone_or_hangs() {
    let cache = RedisServer::start();
    let mut server = RedisServer::start();
    let lock = RedisLock::connect(&server.url(), "tests").await.unwrap();
    let store = RedisCache::connect(&cache.url(), "tests").await.unwrap();
    let mut service = Service::new(LockedStore::new(store).lock(lock.clone()));
    assert_eq!(service.send().await.text(), "guarded true");
    assert!(service.is_guarded().await);

    server.kill();
    assert!(!service.is_guarded().await);
    server.restart();
    service.until_guarded().await;
    assert_eq!(service.send().await.text(), "guarded true");

    server.freeze();
    assert!(!service.is_guarded().await);
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    assert_eq!(service.send().await.text(), "guarded false");
    assert!(began.elapsed() < TIMEOUT / 2, "{:?}", began.elapsed());
    assert!(!service.is_guarded().await);
    server.thaw();
    service.until_guarded().await;
    assert_eq!(service.send().await.text(), "guarded true");
}
