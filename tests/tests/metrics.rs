//! What is counted, and when.
#![expect(
    clippy::redundant_closure_for_method_calls,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and owns its tasks"
)]

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Extension, Router, body::Body, extract::State, http::StatusCode, response::Response,
    routing::post,
};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, MemoryStore, Settings, idempotent,
    testing::{Fault, Faulty, Operation},
};
use idempotent_tests::{
    http::{Runs, keyed, send, until},
    replica::World,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// `ok`, `fail`, `stream` or `large`.
#[idempotent]
async fn create(State(runs): State<Runs>, body: String) -> Response {
    let run = runs.add();
    let (status, body) = match body.as_str() {
        "fail" => (StatusCode::BAD_GATEWAY, Body::empty()),
        "stream" => (
            StatusCode::OK,
            Body::from_stream(futures_util::stream::iter([Ok::<_, std::io::Error>("x")])),
        ),
        "large" => (StatusCode::OK, Body::from(vec![b'x'; 200])),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(2)).await;
            (StatusCode::CREATED, Body::from(run.to_string()))
        }
        _ => (StatusCode::CREATED, Body::from(run.to_string())),
    };
    Response::builder().status(status).body(body).unwrap()
}

/// Everything counted so far, by name and labels. A look takes the values out, so they add up here.
struct Seen(Snapshotter, BTreeMap<String, f64>);

impl Seen {
    fn look(&mut self) -> &BTreeMap<String, f64> {
        for (key, _, _, value) in self.0.snapshot().into_vec() {
            let labels = key.key().labels();
            let labels: Vec<_> = labels
                .map(|label| format!("{{{}={}}}", label.key(), label.value()))
                .collect();
            let name = format!("{}{}", key.key().name(), labels.concat());
            match value {
                DebugValue::Counter(n) => *self.1.entry(name).or_default() += n as f64,
                DebugValue::Gauge(n) => *self.1.entry(name).or_default() += n.into_inner(),
                DebugValue::Histogram(values) => {
                    *self.1.entry(name).or_default() += values
                        .into_iter()
                        .map(|value| value.into_inner())
                        .sum::<f64>();
                }
            }
        }
        &self.1
    }

    fn get(&mut self, name: &str) -> f64 {
        self.look().get(name).copied().unwrap_or_default()
    }
}

fn run(test: impl AsyncFnOnce(&mut Seen, Faulty<MemoryStore>, Router)) {
    let recorder = DebuggingRecorder::new();
    let mut seen = Seen(recorder.snapshotter(), BTreeMap::new());
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = Faulty::new(MemoryStore::new());
            let idempotency = IdempotencyRuntime::builder()
                .caller(Caller::shared())
                .settings(Settings::default().max_response_bytes(100))
                .store(store.clone())
                .build()
                .unwrap();
            test(&mut seen, store, app(idempotency)).await;
        });
    });
}

fn app(runtime: IdempotencyRuntime) -> Router {
    let routes = Router::new().route("/", post(create));
    routes.with_state(Runs::default()).layer(Extension(runtime))
}

#[test]
fn runs_replays_and_conflicts_are_counted() {
    run(async |seen, _, app| {
        for (key, body) in [
            ("a", "ok"),
            ("a", "ok"),
            ("a", "other"),
            ("b", "fail"),
            ("b", "fail"),
            ("s", "stream"),
            ("s", "stream"),
            ("l", "large"),
        ] {
            send(&app, keyed("/", key, body)).await;
        }
        assert_eq!(seen.get("idempotency.executed"), 5.0);
        assert_eq!(seen.get("idempotency.replayed"), 1.0);
        assert_eq!(seen.get("idempotency.conflict{kind=body_mismatch}"), 1.0);
        assert_eq!(
            seen.get("idempotency.conflict{kind=response_unavailable}"),
            1.0
        );
        assert_eq!(
            seen.get("idempotency.unreplayable{reason=unknown_length}"),
            1.0
        );
        assert_eq!(seen.get("idempotency.unreplayable{reason=too_large}"), 1.0);
        assert_eq!(seen.get("idempotency.in_flight"), 0.0);
    });
}

#[test]
fn waiting_is_measured_and_in_flight_goes_up_and_down() {
    run(async |seen, _, app| {
        let spawn = || {
            let app = app.clone();
            tokio::spawn(async move { send(&app, keyed("/", "k", "slow")).await })
        };
        let first = spawn();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(seen.get("idempotency.in_flight"), 1.0);
        let second = spawn();
        assert_eq!(
            (
                first.await.unwrap().is_replay(),
                second.await.unwrap().is_replay()
            ),
            (false, true)
        );
        assert_eq!(seen.get("idempotency.in_flight"), 0.0);
        let waited = seen.get("idempotency.wait");
        assert!((1.5..1.6).contains(&waited), "{waited} seconds");
    });
}

#[test]
fn a_store_that_fails_is_counted_by_operation() {
    run(async |seen, store, app| {
        for (operation, body) in [
            (Operation::Claim, "ok"),
            (Operation::Complete, "ok"),
            (Operation::Release, "fail"),
        ] {
            store.next(operation, Fault::Fail);
            send(&app, keyed("/", &format!("{operation:?}"), body)).await;
        }
        for operation in ["claim", "complete", "release"] {
            assert_eq!(
                seen.get(&format!("idempotency.degraded{{operation={operation}}}")),
                1.0,
                "{operation}"
            );
        }
    });
}

#[test]
fn a_second_effect_is_never_silent() {
    run(async |seen, store, app| {
        store.next(Operation::Claim, Fault::Fail);
        let spawn =
            |app: Router| tokio::spawn(async move { send(&app, keyed("/", "k", "slow")).await });
        // one without a claim, then one with, in another process: whoever reports second has run
        // beside the other
        let unguarded = spawn(app);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let elsewhere = IdempotencyRuntime::builder().caller(Caller::shared());
        let guarded = spawn(self::app(elsewhere.store(store.clone()).build().unwrap()));
        unguarded.await.unwrap();
        assert_eq!(
            seen.get("idempotency.double_effect"),
            1.0,
            "it displaced a claim"
        );
        let second = guarded.await.unwrap();
        assert!(second.is_replay(), "the first success is the answer");
        assert_eq!(
            seen.get("idempotency.double_effect"),
            2.0,
            "and a record stood already"
        );
        assert_eq!(seen.get("idempotency.executed"), 2.0);
    });
}

#[test]
fn a_recorder_that_comes_late_misses_nothing_after_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let idempotency = IdempotencyRuntime::embedded(Caller::shared());
    let app = Router::new()
        .route("/", post(create))
        .with_state(Runs::default())
        .layer(Extension(idempotency));
    runtime.block_on(send(&app, keyed("/", "before", "ok")));
    for key in ["one", "two"] {
        let recorder = DebuggingRecorder::new();
        let mut seen = Seen(recorder.snapshotter(), BTreeMap::new());
        metrics::with_local_recorder(&recorder, || {
            runtime.block_on(async {
                send(&app, keyed("/", key, "ok")).await;
                send(&app, keyed("/", key, "ok")).await;
                until(|| true).await;
            });
        });
        assert_eq!(
            (
                seen.get("idempotency.executed"),
                seen.get("idempotency.replayed")
            ),
            (1.0, 1.0),
            "{key}"
        );
    }
}

/// A claim that lapses while its handler runs is lost; one whose report is still owed afterwards is
/// not counted.
#[test]
fn a_lost_lease_is_counted_once_and_only_while_its_handler_runs() {
    let recorder = DebuggingRecorder::new();
    let mut seen = Seen(recorder.snapshotter(), BTreeMap::new());
    metrics::with_local_recorder(&recorder, || {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        tokio.block_on(async {
            let world = World::default();
            let one = world.replica().plan(10, 201).plan(9000, 201);
            for (lost, cut, runs) in [(0.0, 20_000, 1), (1.0, 9500, 2)] {
                let run = one.spawn_with("/closed", &format!("k{runs}"), "x");
                until(|| world.runs.count() == runs).await;
                one.link.down(Fault::Fail);
                tokio::time::sleep(Duration::from_millis(cut)).await;
                one.link.heal();
                tokio::time::sleep(Duration::from_secs(3)).await;
                assert_eq!(run.await.unwrap().status, 201);
                assert_eq!(seen.get("idempotency.lease_lost"), lost);
            }
        });
    });
}
