//! Reports that the store does not take: kept, bounded, and waited for at shutdown.

use std::time::Duration;

use axum::{Extension, Router, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, Settings, idempotent,
    testing::{Fault, Faulty, LeasedStore, Operation},
};
use idempotent_tests::{
    http::{keyed, send, until},
    replica::World,
};
use tokio::time::sleep;

use super::millis;

#[tokio::test(start_paused = true)]
async fn draining_waits_for_reports() {
    let world = World::default();
    let one = world.replica();
    one.link.down(Fault::Fail);
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    let refused = one.runtime.drain(Duration::from_secs(5)).await;
    assert!(refused.unwrap_err().to_string().contains("1 request"));
    one.link.heal();
    one.runtime.drain(Duration::from_secs(5)).await.unwrap();
    let reply = world.replica().send("/", "x").await;
    assert_eq!(reply.outcome(), (201, true));
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_too() {
    let world = World::default();
    let (one, two) = (world.replica().plan(0, 502), world.replica());
    for _ in 0..2 {
        one.link.next(Operation::Release, Fault::Fail);
    }
    assert_eq!(one.send("/closed", "x").await.status, 502);
    sleep(millis(500)).await;
    assert_eq!(one.link.seen(Operation::Release), 3);
    assert_eq!(two.send("/closed", "x").await.outcome(), (201, false));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_released_once_the_store_takes_it() {
    #[idempotent]
    async fn panics() -> StatusCode {
        sleep(millis(100)).await;
        panic!("as planned")
    }
    let store = Faulty::new(LeasedStore::new()).awaiting();
    let runtime = IdempotencyRuntime::builder().caller(Caller::shared());
    let runtime = runtime.store(store.clone()).build().unwrap();
    let app = Router::new()
        .route("/", post(panics))
        .layer(Extension(runtime));
    store.next(Operation::Release, Fault::Fail);
    for n in 1..3 {
        let app = app.clone();
        let run = tokio::spawn(async move { send(&app, keyed("/", "k", "")).await });
        assert!(run.await.unwrap_err().is_panic());
        until(|| store.seen(Operation::Release) == n + 1).await;
    }
}

const MIB: usize = 1024 * 1024;

#[idempotent]
async fn large() -> (StatusCode, [(&'static str, &'static str); 1], Vec<u8>) {
    (
        StatusCode::CREATED,
        [("location", "/things/1")],
        vec![b'x'; MIB],
    )
}

/// A hundred responses of a megabyte wait for the store: most of them in full, the others as a
/// note, and none is forgotten.
#[tokio::test(start_paused = true)]
async fn waiting_reports_are_bounded_by_bytes() {
    let world = World::default();
    let build = |store| {
        let settings = Settings::default().max_response_bytes(2 * MIB);
        let builder = IdempotencyRuntime::builder().caller(Caller::shared());
        builder.settings(settings).store(store).build().unwrap()
    };
    let app = |runtime| {
        let routes = Router::new().route("/", post(large));
        routes.layer(Extension(runtime))
    };
    let link = Faulty::new(world.store.clone()).awaiting();
    let runtime = build(link.clone());
    let one = app(runtime.clone());
    link.down(Fault::Fail);
    for n in 0..100 {
        let reply = send(&one, keyed("/", &format!("k{n}"), "")).await;
        assert_eq!((reply.outcome(), reply.body.len()), ((201, false), MIB));
    }
    let health = runtime.health().await;
    assert_eq!(health.pending_reports, 100);
    assert!(
        (60 * MIB..=65 * MIB).contains(&health.pending_bytes),
        "{health:?}"
    );
    // Before and after the store has been told.
    for _ in 0..2 {
        let mut replayed = 0;
        for n in 0..100 {
            let reply = send(&one, keyed("/", &format!("k{n}"), "")).await;
            if reply.status == 201 {
                assert_eq!((reply.is_replay(), reply.body.len()), (true, MIB));
                replayed += 1;
            } else {
                assert_eq!(reply.problem(), "urn:idempotency:response-unavailable");
                assert_eq!(reply.headers["location"], "/things/1");
            }
        }
        assert!((60..=64).contains(&replayed), "{replayed}");
        link.heal();
        runtime.drain(Duration::from_mins(1)).await.unwrap();
    }
    assert_eq!(runtime.health().await.pending_bytes, 0);
}

/// Completions fail though claims succeed, so that every request leaves a report: in the end
/// nothing runs of which nothing could be kept.
#[tokio::test(start_paused = true)]
async fn nothing_runs_whose_report_has_no_room() {
    let link = Faulty::new(LeasedStore::new()).awaiting();
    let settings = Settings::default().max_response_bytes(32 * MIB);
    let builder = IdempotencyRuntime::builder().caller(Caller::shared());
    let runtime = builder
        .settings(settings)
        .store(link.clone())
        .build()
        .unwrap();
    let routes = Router::new().route("/", post(sized));
    let app = routes.layer(Extension(runtime.clone()));
    link.always(Operation::Complete, Fault::Fail);
    for n in 0..100_000 {
        let size = if n < 2 { "25000000" } else { "1" };
        let reply = send(&app, keyed("/", &format!("k{n}"), size)).await;
        if reply.status == 503 {
            assert!(n > 10_000, "{n}");
            assert_eq!(reply.problem(), "urn:idempotency:store-unavailable");
            return;
        }
        assert_eq!(reply.status, 201);
    }
    let health = runtime.health().await;
    assert!(health.pending_bytes == 0, "unbounded: {health:?}");
}

#[idempotent]
async fn sized(size: String) -> (StatusCode, Vec<u8>) {
    (StatusCode::CREATED, vec![b'x'; size.parse().unwrap_or(0)])
}

/// A completion is under way when its Tokio runtime shuts down; another one of the process reports.
#[test]
fn a_report_outlives_its_tokio_runtime() {
    let world = World::default();
    let one = world.replica();
    let tokio = || tokio::runtime::Runtime::new().unwrap();
    one.link
        .next(Operation::Complete, Fault::Delay(Duration::from_mins(1)));
    let first = tokio();
    first.block_on(async {
        let _running = one.spawn("/closed", "x");
        until(|| one.link.seen(Operation::Complete) == 1).await;
    });
    first.shutdown_background();
    tokio().block_on(async {
        // Whatever comes next of this process.
        drop(one.spawn_with("/closed", "another", "x").await);
        let reported = one.runtime.drain(Duration::from_secs(5)).await;
        reported.unwrap();
        let reply = world.replica().send("/closed", "x").await;
        assert_eq!(reply.outcome(), (201, true));
    });
    assert_eq!(world.runs.count(), 2);
}
