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
