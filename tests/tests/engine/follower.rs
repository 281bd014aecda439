//! Those who follow another request of their process, however that one ends.

use std::time::Duration;

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, Settings, idempotent,
    testing::{Fault, Faulty, LeasedStore, Operation},
};
use idempotent_tests::{
    http::{Runs, keyed, send, until},
    replica::World,
};
use tokio::time::sleep;

use super::millis;

#[idempotent]
async fn panics_first(State(runs): State<Runs>) -> (StatusCode, String) {
    let run = runs.add();
    sleep(millis(200)).await;
    assert!(run > 1, "as planned");
    (StatusCode::CREATED, format!("run {run}"))
}

/// With a store that works, and with one that does not: one of those who wait runs, the others get
/// its answer.
#[tokio::test(start_paused = true)]
async fn a_panic_lets_one_of_them_run() {
    for down in [false, true] {
        let runs = Runs::default();
        let store = Faulty::new(LeasedStore::new()).awaiting();
        let builder = IdempotencyRuntime::builder().caller(Caller::shared());
        let runtime = builder.store(store.clone()).build().unwrap();
        let app = Router::new()
            .route("/", post(panics_first))
            .with_state(runs.clone())
            .layer(Extension(runtime.clone()));
        if down {
            store.down(Fault::Fail);
        }
        let spawn = || {
            let app = app.clone();
            tokio::spawn(async move { send(&app, keyed("/", "k", "")).await })
        };
        let first = spawn();
        until(|| runs.count() == 1).await;
        let following: Vec<_> = (0..10).map(|_| spawn()).collect();
        assert!(first.await.unwrap_err().is_panic());
        for reply in following {
            let reply = reply.await.unwrap();
            assert_eq!(
                (reply.status, reply.text().as_str()),
                (StatusCode::CREATED, "run 2")
            );
        }
        assert_eq!((runs.count(), runtime.in_flight()), (2, 0));
        store.heal();
        runtime.drain(Duration::from_secs(10)).await.unwrap();
    }
}

/// Aborted at any moment, the first one's run goes on, and they get its answer.
#[tokio::test(start_paused = true)]
async fn an_abort_of_the_first_changes_nothing() {
    for fault in [
        None,
        Some(Fault::Fail),
        Some(Fault::LoseReply),
        Some(Fault::Hang),
    ] {
        for moment in (0..420).step_by(7) {
            let world = World::default();
            let one = world.replica().plan(200, 201);
            if let Some(fault) = fault {
                one.link.next(Operation::Claim, fault);
                one.link.next(Operation::Complete, fault);
            } else {
                one.link.next(Operation::Claim, Fault::Delay(millis(50)));
                one.link.next(Operation::Complete, Fault::Delay(millis(50)));
            }
            let first = one.spawn("/", "x");
            sleep(millis(1)).await;
            let following: Vec<_> = (0..5).map(|_| one.spawn("/", "x")).collect();
            sleep(millis(moment)).await;
            first.abort();
            for reply in following {
                let reply = reply.await.unwrap();
                let run = (reply.outcome(), reply.text());
                assert_eq!(run, ((201, true), "run 1".to_owned()), "{fault:?} {moment}");
            }
            one.runtime.drain(Duration::from_secs(10)).await.unwrap();
            assert_eq!(world.effects.count(), 1, "{fault:?} {moment}");
            assert_eq!(world.replica().send("/", "x").await.outcome(), (201, true));
        }
    }
}

/// More handlers than may run: each of them is refused or answered, and the place is free again.
#[tokio::test(start_paused = true)]
async fn who_may_not_run_leaves_the_key_free() {
    let world = World::default();
    let settings = Settings::default().max_in_flight(1);
    let one = world.replica_with(settings).plan(1000, 201);
    let busy = one.spawn_with("/", "other", "x");
    until(|| world.runs.count() == 1).await;
    let refused: Vec<_> = (0..20).map(|_| one.spawn("/", "x")).collect();
    for reply in refused {
        let reply = reply.await.unwrap();
        let problem = reply.problem();
        assert!(
            problem.ends_with("overloaded")
                || reply.status == 201
                || problem.ends_with("in-flight"),
            "{problem}"
        );
    }
    assert_eq!(busy.await.unwrap().outcome(), (201, false));
    sleep(millis(1000)).await;
    let reply = one.send("/", "x").await;
    assert_eq!(reply.status, 201);
    assert_eq!(world.runs.count(), 2);
}

/// Bodies of two kinds at one key of one process: one kind is answered, the other is refused.
#[tokio::test(start_paused = true)]
async fn of_two_bodies_one_is_refused() {
    for down in [false, true] {
        let world = World::default();
        let one = world.replica().plan(100, 201);
        if down {
            one.link.down(Fault::Fail);
        }
        let replies: Vec<_> = (0..20)
            .map(|n| {
                (
                    n % 2,
                    one.spawn("/", if n % 2 == 0 { "x" } else { "another" }),
                )
            })
            .collect();
        for (kind, reply) in replies {
            let reply = reply.await.unwrap();
            if kind == 0 {
                assert_eq!(
                    (reply.status.as_u16(), reply.text()),
                    (201, "run 1".to_owned())
                );
            } else {
                assert_eq!(reply.problem(), "urn:idempotency:key-reused");
            }
        }
        assert_eq!(world.runs.count(), 1);
    }
}
