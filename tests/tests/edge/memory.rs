//! The embedded store at its bound.

use std::time::Duration;

use axum::{Extension, Router, extract::State, routing::post};
use futures_util::future::join_all;
use idempotent_runtime::{Caller, IdempotencyRuntime, MemoryStore, idempotent, store::WhenFull};
use idempotent_tests::http::{Runs, keyed, send};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

#[idempotent]
async fn create(State(runs): State<Runs>, body: String) -> String {
    let run = runs.add();
    if body == "slow" {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    format!("{run} {}", "x".repeat(1000))
}

fn app(store: &MemoryStore) -> (Router, Runs) {
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
    (app, runs)
}

/// What is refused does not grow the store.
#[tokio::test]
async fn a_full_store_that_refuses_does_not_grow() {
    let most = 256 * 1024;
    let store = MemoryStore::new()
        .max_bytes(most)
        .when_full(WhenFull::Refuse);
    let (app, _) = app(&store);
    for n in 0..10_000 {
        let reply = send(&app, keyed("/", &format!("k{n}"), "")).await;
        assert!(matches!(reply.status.as_u16(), 200 | 503));
    }
    assert!(
        store.stored_bytes() <= most + most / 4,
        "{} bytes, {most} at most",
        store.stored_bytes()
    );
}

/// A full store is a healthy one: no duplicate runs beside another.
#[tokio::test(start_paused = true)]
async fn duplicates_beside_a_full_store_do_not_run() {
    let store = MemoryStore::new().max_bytes(1).when_full(WhenFull::Refuse);
    let (app, runs) = app(&store);
    drop(send(&app, keyed("/", "fills", "")).await);
    let before = runs.count();
    let replies = join_all((0..2).map(|_| send(&app, keyed("/", "k", "slow")))).await;
    assert!(replies.iter().all(|reply| reply.status == 503));
    assert_eq!(runs.count(), before);
}

/// A response that the store has no room for is counted as one that is not stored.
#[test]
fn a_record_that_lost_its_response_is_counted() {
    let recorder = DebuggingRecorder::new();
    let counted = metrics::with_local_recorder(&recorder, || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async {
                let store = MemoryStore::new().max_bytes(2000);
                let (app, _) = app(&store);
                drop(send(&app, keyed("/", "k", "")).await);
                let again = send(&app, keyed("/", "k", "")).await;
                assert_eq!(again.status, 409, "kept without its response");
            });
        recorder.snapshotter().snapshot().into_vec()
    });
    assert!(
        counted
            .iter()
            .any(|(key, _, _, _)| key.key().name() == "idempotency.unreplayable"),
        "not counted"
    );
}

/// Runs that a recorder sees which stands where another one stood before, as a local recorder on
/// the stack does.
#[test]
fn a_new_recorder_at_an_old_place_sees_its_own_runs() {
    let store = MemoryStore::new();
    let (app, _) = app(&store);
    let mut recorder = Box::new(DebuggingRecorder::new());
    let mut seen = Vec::new();
    for round in 0..2 {
        *recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&*recorder, || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(async {
                    drop(send(&app, keyed("/", &format!("k{round}"), "")).await);
                });
        });
        let executed = recorder.snapshotter().snapshot().into_vec();
        seen.push(executed.iter().any(|(key, _, _, value)| {
            key.key().name() == "idempotency.executed" && *value == DebugValue::Counter(1)
        }));
    }
    assert_eq!(seen, [true, true]);
}
