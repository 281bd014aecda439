//! Stores that can be reached and do not let a request run: full, or with something unreadable.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, MemoryStore, StorageKey, idempotent,
    store::{
        Claim, ClaimOutcome, CompleteOutcome, Fingerprint, Level, Record, RecordBody,
        ReleaseOutcome, RenewOutcome, Step, Store, StoreError, Token, WhenFull,
    },
};
use idempotent_tests::http::{Runs, keyed, send};

#[idempotent]
async fn create(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

/// A store that answers what it is told.
struct Scripted {
    claim: Result<ClaimOutcome, fn() -> StoreError>,
    inner: MemoryStore,
}

impl Store for Scripted {
    fn level(&self) -> Level {
        Level::Leased
    }

    fn claim(&self, _: &StorageKey, _: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        Step::Now(self.claim.clone().map_err(|error| error()))
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        self.inner.renew(key, claim)
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        self.inner.complete(key, token, record, retention)
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        self.inner.release(key, token)
    }
}

fn scripted(claim: Result<ClaimOutcome, fn() -> StoreError>) -> (Router, Runs) {
    let store = Scripted {
        claim,
        inner: MemoryStore::new(),
    };
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .store(store)
        .build()
        .unwrap();
    let runs = Runs::default();
    (
        Router::new()
            .route("/", post(create))
            .with_state(runs.clone())
            .layer(Extension(runtime)),
        runs,
    )
}

#[tokio::test]
async fn what_cannot_be_read_or_compared_is_refused_even_when_open() {
    let unreadable = || StoreError::unreadable("a list stands at the key");
    let foreign = Fingerprint::from_parts(99, [0; 32]);
    let record = Record::new(
        foreign,
        StatusCode::OK,
        vec![],
        RecordBody::Stored("".into()),
    );
    for claim in [
        Err(unreadable as fn() -> _),
        Ok(ClaimOutcome::Completed(record.into())),
        Ok(ClaimOutcome::InProgress {
            fingerprint: foreign,
            lease_left: Some(Duration::from_millis(1)),
        }),
    ] {
        let (app, runs) = scripted(claim);
        let reply = send(&app, keyed("/", "k", "")).await;
        assert_eq!(
            (reply.outcome(), reply.problem().as_str()),
            ((503, false), "urn:idempotency:store-unavailable")
        );
        assert_eq!(runs.count(), 0);
    }
}

#[tokio::test]
async fn a_full_store_refuses_in_every_mode() {
    let store = MemoryStore::new()
        .max_bytes(64 * 1024)
        .when_full(WhenFull::Refuse);
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .store(store.clone())
        .build()
        .unwrap();
    let runs = Runs::default();
    let app = Router::new()
        .route("/", post(create))
        .with_state(runs.clone())
        .layer(Extension(runtime));
    let refused = loop {
        let reply = send(&app, keyed("/", &runs.count().to_string(), "")).await;
        match reply.outcome() {
            (200, false) => assert!(runs.count() < 1000, "it is full at some time"),
            _ => break reply,
        }
    };
    assert_eq!(refused.status, 503);
    assert_eq!(refused.problem(), "urn:idempotency:store-unavailable");
    assert!(
        send(&app, keyed("/", "0", "")).await.is_replay(),
        "what it has, it replays"
    );
    assert_eq!(runs.count(), store.len());
}
