//! A store that wakes its waiters too early, or for nothing.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, StorageKey, idempotent,
    store::{
        BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, Record, ReleaseOutcome,
        RenewOutcome, Step, Store, StoreError, Token,
    },
    testing::LeasedStore,
};
use idempotent_tests::http::{keyed, send};
use tokio::time::sleep;

use super::millis;

/// Counts claims; its watches end at once.
#[derive(Clone)]
struct Hasty {
    store: LeasedStore,
    claims: Arc<AtomicUsize>,
}

impl Store for Hasty {
    fn level(&self) -> Level {
        self.store.level()
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        self.claims.fetch_add(1, Ordering::Relaxed);
        self.store.claim(key, claim)
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        self.store.renew(key, claim)
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        self.store.complete(key, token, record, retention)
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        self.store.release(key, token)
    }

    fn watch(&self, _: &StorageKey) -> Option<BoxFuture<()>> {
        Some(Box::pin(ready(())))
    }
}

#[idempotent]
async fn slow() -> StatusCode {
    sleep(millis(4000)).await;
    StatusCode::CREATED
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_early_make_no_busy_loop() {
    let store = Hasty {
        store: LeasedStore::new(),
        claims: Arc::default(),
    };
    let replica = || {
        let runtime = IdempotencyRuntime::builder().caller(Caller::shared());
        let runtime = runtime.store(store.clone()).build().unwrap();
        Router::new()
            .route("/", post(slow))
            .layer(Extension(runtime))
    };
    let (one, two) = (replica(), replica());
    let first = tokio::spawn(async move { send(&one, keyed("/", "k", "")).await });
    sleep(millis(10)).await;
    let second = send(&two, keyed("/", "k", "")).await;
    assert_eq!(second.outcome(), (201, true));
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    let claims = store.claims.load(Ordering::Relaxed);
    assert!(claims < 40, "{claims} claims in four seconds");
}
