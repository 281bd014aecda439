//! Draining, and what ends in it.

use std::time::Duration;

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use futures_util::FutureExt;
use idempotent_runtime::{
    Caller, IdempotencyRuntime, MemoryStore, Settings, idempotent,
    testing::{Fault, Faulty, Operation},
};
use idempotent_tests::http::{Embedded, Runs, hang_up, keyed, send};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[idempotent]
async fn create(State(runs): State<Runs>, body: String) -> StatusCode {
    let _ = runs.add();
    tokio::time::sleep(millis(500)).await;
    assert!(body != "panic", "as the test asks");
    StatusCode::CREATED
}

fn app() -> (IdempotencyRuntime, Faulty<MemoryStore>, Router, Runs) {
    let store = Faulty::new(MemoryStore::new()).awaiting();
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(Settings::default().store_timeout(Duration::from_secs(2)))
        .store(store.clone())
        .build()
        .unwrap();
    let runs = Runs::default();
    let app = Router::new()
        .route("/", post(create))
        .with_state(runs.clone())
        .layer(Extension(runtime.clone()));
    (runtime, store, app, runs)
}

#[tokio::test(start_paused = true)]
async fn draining_without_a_deadline_does_not_panic() {
    let runtime = Embedded::shared().runtime;
    assert!(runtime.drain(Duration::MAX).await.is_ok());
}

/// The client has gone while the claim was on its way; its run begins after that.
#[tokio::test(start_paused = true)]
async fn draining_waits_for_a_detached_run_that_is_still_claiming() {
    let (runtime, store, app, runs) = app();
    store.next(Operation::Claim, Fault::Delay(millis(200)));
    hang_up(&app, keyed("/", "k", ""), millis(50)).await;
    let drained = runtime.drain(Duration::from_secs(10)).await;
    assert!(drained.is_ok());
    let before = runs.count();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(runs.count() - before, 0, "a handler began after the drain");
}

/// A key whose run has panicked is free once the drain is over.
#[tokio::test(start_paused = true)]
async fn draining_waits_for_the_release_behind_a_panic() {
    let (runtime, store, app, _) = app();
    store.next(Operation::Release, Fault::Delay(millis(200)));
    let request = send(&app, keyed("/", "k", "panic"));
    assert!(
        std::panic::AssertUnwindSafe(request)
            .catch_unwind()
            .await
            .is_err()
    );
    assert!(runtime.drain(Duration::from_secs(10)).await.is_ok());
    assert_eq!(store.store().in_progress(), 0, "still claimed");
}
