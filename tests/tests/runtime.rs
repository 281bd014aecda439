//! Building, configuring and installing a runtime.
#![expect(
    clippy::unchecked_time_subtraction,
    clippy::too_many_lines,
    clippy::duration_suboptimal_units,
    reason = "a test fails by panicking, and owns its tasks"
)]

use std::time::Duration;

use axum::{Extension, Router, extract::State, routing::post};
use idempotent_runtime::{
    Caller, Error, ErrorKind, IdempotencyRuntime, MemoryStore, OnStoreFailure, Settings, idempotent,
};
use idempotent_tests::http::{Runs, keyed, send};

const HOUR: Duration = Duration::from_secs(3600);

fn build(settings: Settings) -> Result<IdempotencyRuntime, Error> {
    IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(settings)
        .build()
}

#[test]
fn a_caller_must_be_chosen() {
    let error = IdempotencyRuntime::builder().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(
        error.to_string().contains(".caller("),
        "says which line to add: {error}"
    );
}

#[test]
fn bounds_are_inclusive() {
    let good = [
        Settings::default(),
        Settings::default().retention(HOUR),
        Settings::default().retention(168 * HOUR),
        Settings::default().lease(Duration::from_secs(1)),
        Settings::default().lease(HOUR),
        Settings::default().wait(Duration::ZERO),
        Settings::default().wait(Duration::from_secs(60)),
        Settings::default().store_timeout(Duration::from_millis(1)),
        Settings::default()
            .max_request_bytes(1)
            .max_response_bytes(1)
            .max_in_flight(1)
            .max_waiters_per_key(1),
    ];
    for settings in good {
        assert!(build(settings.clone()).is_ok(), "{settings:?}");
    }
    let tick = Duration::from_millis(1);
    let bad = [
        ("retention", Settings::default().retention(HOUR - tick)),
        (
            "retention",
            Settings::default().retention(168 * HOUR + tick),
        ),
        ("retention", Settings::default().retention(Duration::MAX)),
        (
            "lease",
            Settings::default().lease(Duration::from_millis(999)),
        ),
        ("lease", Settings::default().lease(HOUR + tick)),
        (
            "wait",
            Settings::default().wait(Duration::from_secs(60) + tick),
        ),
        (
            "store_timeout",
            Settings::default().store_timeout(Duration::ZERO),
        ),
        (
            "max_request_bytes",
            Settings::default().max_request_bytes(0),
        ),
        (
            "max_response_bytes",
            Settings::default().max_response_bytes(usize::MAX),
        ),
        ("max_in_flight", Settings::default().max_in_flight(0)),
        (
            "max_waiters_per_key",
            Settings::default().max_waiters_per_key(0),
        ),
        (
            "replay_header",
            Settings::default().replay_header("idempotency-key".parse().unwrap()),
        ),
    ];
    for (name, settings) in bad {
        let error = build(settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn one_error_names_every_bad_value() {
    let json = r#"{
        "retention": "8d", "lease": "fast", "wait": "90s", "store_timeout": 100,
        "max_request_bytes": "many", "on_store_failure": "ajar", "header": "no header"
    }"#;
    let settings: Settings = serde_json::from_str(json).unwrap();
    let error = IdempotencyRuntime::builder()
        .settings(settings)
        .scope_headers(["x-tenant", "x tenant"])
        .problem_base("problems/")
        .build()
        .unwrap_err()
        .to_string();
    for part in [
        "`retention` is 8days, not between 1h and 7days",
        "`lease` is \"fast\"",
        "`wait` is 1m 30s, not between 0s and 1m",
        "`store_timeout` is \"100\", which lacks a unit",
        "`max_request_bytes` is \"many\"",
        "`on_store_failure` is \"ajar\"",
        "`header` is \"no header\"",
        "\"x tenant\"",
        "`problem_base` is \"problems/\"",
        ".caller(",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn settings_are_read_from_texts_and_numbers() {
    let json = r#"{
        "retention": "1h 30m", "lease": "15s", "wait": "0s", "store_timeout": "250ms", "max_request_bytes": 1024,
        "max_response_bytes": "2048", "max_in_flight": 8, "max_waiters_per_key": 9, "on_store_failure": "closed",
        "header": "X-Request-Key", "replay_header": "X-Replayed"
    }"#;
    let settings: Settings = serde_json::from_str(json).unwrap();
    let expected = Settings::default()
        .retention(Duration::from_secs(5400))
        .lease(Duration::from_secs(15))
        .wait(Duration::ZERO)
        .store_timeout(Duration::from_millis(250))
        .max_request_bytes(1024)
        .max_response_bytes(2048)
        .max_in_flight(8)
        .max_waiters_per_key(9)
        .on_store_failure(OnStoreFailure::Closed)
        .header("x-request-key".parse().unwrap())
        .replay_header("x-replayed".parse().unwrap());
    assert_eq!(settings, expected);
    assert_eq!(
        serde_json::from_str::<Settings>("{}").unwrap(),
        Settings::default()
    );
    let unknown = serde_json::from_str::<Settings>(r#"{"retenton": "1h"}"#)
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("retenton") && unknown.contains("retention"),
        "{unknown}"
    );
}

#[idempotent]
async fn create(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[tokio::test]
async fn one_runtime_is_installed_and_others_stand_on_routers() {
    let installed = MemoryStore::new();
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .store(installed.clone())
        .build()
        .unwrap();
    runtime.install().unwrap();
    let again = runtime.install().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyInstalled);
    assert!(
        again.to_string().contains("Extension"),
        "says what else to do: {again}"
    );

    let runs = Runs::default();
    let router = Router::new()
        .route("/", post(create))
        .with_state(runs.clone());
    assert!(!send(&router, keyed("/", "k", "")).await.is_replay());
    assert!(send(&router, keyed("/", "k", "")).await.is_replay());
    assert_eq!((runs.count(), installed.len()), (1, 1));

    let own = MemoryStore::new();
    let other = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .store(own.clone())
        .build()
        .unwrap();
    let router = router.layer(Extension(other));
    assert!(
        !send(&router, keyed("/", "k", "")).await.is_replay(),
        "the router's runtime wins"
    );
    assert_eq!((runs.count(), installed.len(), own.len()), (2, 1, 1));
}

#[test]
fn public_types_are_send_sync_and_cheap_to_clone() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<IdempotencyRuntime>();
    shared::<MemoryStore>();
    shared::<Settings>();
    shared::<Caller>();
    assert_eq!(size_of::<IdempotencyRuntime>(), size_of::<usize>());
}
