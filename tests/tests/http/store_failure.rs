//! A store that fails before, during or after the run, and one that answers over a network.

use std::time::Duration;

use axum::{
    Extension, Json, Router,
    extract::State,
    http::{StatusCode, header},
    routing::post,
};
use idempotent_runtime::{
    Caller, IdempotencyContext, IdempotencyRuntime, MemoryStore, OnStoreFailure, Settings,
    idempotent,
    testing::{Fault, Faulty, Operation},
};
use idempotent_tests::http::{Runs, hang_up, keyed, send, until};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[idempotent]
async fn create(
    State(runs): State<Runs>,
    context: IdempotencyContext,
    body: String,
) -> (StatusCode, Json<Value>) {
    let run = runs.add();
    let time: u64 = body.parse().unwrap_or_default();
    sleep(millis(time)).await;
    let status = if body == "fail" {
        StatusCode::BAD_GATEWAY
    } else {
        StatusCode::CREATED
    };
    (
        status,
        Json(json!({ "run": run, "guarded": context.guarded() })),
    )
}

#[idempotent(on_store_failure = "closed")]
async fn closed(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent(required)]
async fn required(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent(required, on_store_failure = "open")]
async fn required_open(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent]
async fn large(
    State(runs): State<Runs>,
) -> (StatusCode, [(header::HeaderName, &'static str); 1], Vec<u8>) {
    let _ = runs.add();
    sleep(millis(50)).await;
    (
        StatusCode::CREATED,
        [(header::LOCATION, "/orders/1")],
        vec![b'x'; 65_536],
    )
}

struct Fixture {
    store: Faulty<MemoryStore>,
    runtime: IdempotencyRuntime,
    app: Router,
    runs: Runs,
}

impl Fixture {
    fn new(store: Faulty<MemoryStore>) -> Self {
        Self::with(store, Settings::default())
    }

    fn with(store: Faulty<MemoryStore>, settings: Settings) -> Self {
        let runtime = runtime(&store, settings);
        let runs = Runs::default();
        let app = Router::new()
            .route("/", post(create))
            .route("/closed", post(closed))
            .route("/required", post(required))
            .route("/required_open", post(required_open))
            .route("/large", post(large))
            .with_state(runs.clone())
            .layer(Extension(runtime.clone()));
        Self {
            store,
            runtime,
            app,
            runs,
        }
    }

    async fn send(&self, key: &str, body: &str) -> idempotent_tests::http::Reply {
        send(&self.app, keyed("/", key, body.to_owned())).await
    }

    /// These routes in another process on the same store.
    fn elsewhere(&self, routes: Router<Runs>) -> Router {
        let runtime = runtime(&self.store, Settings::default());
        routes
            .with_state(self.runs.clone())
            .layer(Extension(runtime))
    }

    fn records(&self) -> usize {
        self.store.store().len() - self.store.store().in_progress()
    }
}

fn runtime(store: &Faulty<MemoryStore>, settings: Settings) -> IdempotencyRuntime {
    let builder = IdempotencyRuntime::builder().caller(Caller::shared());
    builder
        .settings(settings)
        .store(store.clone())
        .build()
        .unwrap()
}

fn faulty() -> Faulty<MemoryStore> {
    Faulty::new(MemoryStore::new())
}

#[tokio::test(start_paused = true)]
async fn b023_a_save_that_fails_never_releases_the_claim() {
    for store in [faulty(), faulty().awaiting()] {
        let it = Fixture::new(store);
        it.store.next(Operation::Complete, Fault::Fail);
        let first = it.send("k", "").await;
        assert_eq!(
            (first.outcome(), first.text().as_str()),
            ((201, false), r#"{"guarded":true,"run":1}"#)
        );
        let second = it.send("k", "").await;
        assert_eq!((second.outcome(), &second.body), ((201, true), &first.body));
        // It is reported again, and then other processes know of it too.
        until(|| it.records() == 1).await;
        let elsewhere = it.elsewhere(Router::new().route("/", post(create)));
        let third = send(&elsewhere, keyed("/", "k", "")).await;
        assert_eq!((third.outcome(), &third.body), ((201, true), &first.body));
        assert_eq!((it.runs.count(), it.store.seen(Operation::Release)), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn b024_open_runs_unguarded_and_costs_a_bounded_time() {
    for (fault, longest) in [(Fault::Fail, 0), (Fault::Hang, 310)] {
        let it = Fixture::new(faulty().awaiting());
        it.store.down(fault);
        for n in 0..20 {
            let began = Instant::now();
            let reply = it.send(&format!("k{n}"), "").await;
            assert_eq!(
                (reply.outcome(), reply.text()),
                (
                    (201, false),
                    format!(r#"{{"guarded":false,"run":{}}}"#, n + 1)
                )
            );
            assert!(
                began.elapsed() <= millis(longest),
                "{fault:?}: {:?}",
                began.elapsed()
            );
        }
        assert_eq!(it.runs.count(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn b025_a_store_that_dies_during_the_run_changes_nothing_for_the_client() {
    let it = Fixture::new(faulty().awaiting());
    let reply = tokio::spawn({
        let app = it.app.clone();
        async move { send(&app, keyed("/large", "k", "")).await }
    });
    until(|| it.runs.count() == 1).await;
    it.store.down(Fault::Hang);
    let began = Instant::now();
    let reply = reply.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(
        (
            reply.outcome(),
            &reply.headers["location"],
            reply.body.len()
        ),
        ((201, false), &"/orders/1".parse().unwrap(), 65_536)
    );
}

#[tokio::test(start_paused = true)]
async fn closed_refuses_and_sends_a_release_behind_its_claim() {
    let it = Fixture::new(faulty());
    for path in ["/closed", "/required"] {
        it.store.next(Operation::Claim, Fault::LoseReply);
        let reply = send(&it.app, keyed(path, "k", "")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (503, "urn:idempotency:store-unavailable")
        );
        assert_eq!(reply.headers["retry-after"], "1");
        // the claim that had landed
        until(|| it.store.store().in_progress() == 0).await;
        assert_eq!(
            send(&it.app, keyed(path, "k", "")).await.outcome(),
            (200, false)
        );
    }
    it.store.down(Fault::Fail);
    assert_eq!(
        send(&it.app, keyed("/required_open", "k", ""))
            .await
            .outcome(),
        (200, false)
    );
    let settings = Settings::default().on_store_failure(OnStoreFailure::Closed);
    let it = Fixture::with(faulty(), settings);
    it.store.down(Fault::Fail);
    assert_eq!(it.send("k", "").await.status, 503);
    assert_eq!(it.runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unguarded_run_reports_like_any_other() {
    let it = Fixture::new(faulty());
    it.store.next(Operation::Claim, Fault::Fail);
    assert_eq!(it.send("k", "").await.outcome(), (201, false));
    let again = it.send("k", "").await;
    assert_eq!(
        (again.outcome(), again.text().as_str()),
        ((201, true), r#"{"guarded":false,"run":1}"#)
    );
    it.store.next(Operation::Claim, Fault::LoseReply);
    assert_eq!(it.send("failing", "fail").await.status, 502);
    until(|| it.store.store().in_progress() == 0).await;
    assert_eq!(it.runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_seen_a_claim_never_runs_unguarded() {
    let it = Fixture::new(faulty().unwatched());
    let first = tokio::spawn({
        let app = it.app.clone();
        async move { send(&app, keyed("/", "k", "1000")).await }
    });
    until(|| it.runs.count() == 1).await;
    let second = tokio::spawn({
        let app = it.elsewhere(Router::new().route("/", post(create)));
        async move { send(&app, keyed("/", "k", "1000")).await }
    });
    until(|| it.store.seen(Operation::Claim) >= 2).await;
    it.store.always(Operation::Claim, Fault::Fail);
    let second = second.await.unwrap();
    assert_eq!(
        (second.status.as_u16(), second.problem().as_str()),
        (409, "urn:idempotency:in-flight")
    );
    assert_eq!(first.await.unwrap().outcome(), (201, false));
    assert_eq!(it.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_behind_a_network_gives_the_same_answers() {
    for store in [faulty().awaiting(), faulty().awaiting().unwatched()] {
        let it = Fixture::new(store);
        let spawn = || {
            let app = it.app.clone();
            tokio::spawn(async move { send(&app, keyed("/", "k", "1000")).await })
        };
        let requests: Vec<_> = (0..10).map(|_| spawn()).collect();
        let mut replayed = 0;
        for request in requests {
            let reply = request.await.unwrap();
            assert_eq!(
                (reply.status.as_u16(), reply.text().as_str()),
                (201, r#"{"guarded":true,"run":1}"#)
            );
            replayed += usize::from(reply.is_replay());
        }
        assert_eq!((it.runs.count(), replayed), (1, 9));
        assert_eq!(it.send("k", "other").await.status, 422);
        assert_eq!(it.send("failing", "fail").await.status, 502);
        assert_eq!(
            (
                it.records(),
                it.store.store().in_progress(),
                it.runtime.in_flight()
            ),
            (1, 0, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_during_the_claim_leaks_nothing() {
    let it = Fixture::new(faulty());
    it.store.next(Operation::Claim, Fault::Delay(millis(60)));
    hang_up(&it.app, keyed("/", "k", ""), millis(10)).await;
    assert_eq!(it.runs.count(), 0);
    until(|| it.records() == 1).await;
    assert_eq!(
        it.send("k", "").await.outcome(),
        (201, true),
        "the run went on without its client"
    );
    assert_eq!((it.runs.count(), it.store.store().in_progress()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_a_claim_whose_client_has_left() {
    let it = Fixture::new(faulty());
    it.store.next(Operation::Claim, Fault::Delay(millis(60)));
    hang_up(&it.app, keyed("/", "k", "1000"), millis(10)).await;
    assert_eq!((it.runs.count(), it.runtime.in_flight()), (0, 0));
    assert!(it.runtime.drain(millis(20)).await.is_err());
    it.runtime.drain(Duration::MAX).await.unwrap();
    assert_eq!((it.runs.count(), it.records()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_hangs_up_behind_a_network_stops_waiting() {
    let it = Fixture::new(faulty().awaiting());
    let first = tokio::spawn({
        let app = it.app.clone();
        async move { send(&app, keyed("/", "k", "2000")).await }
    });
    until(|| it.runs.count() == 1).await;
    hang_up(&it.app, keyed("/", "k", "2000"), millis(100)).await;
    let seen = it.store.seen(Operation::Claim);
    sleep(millis(1500)).await;
    assert_eq!(
        it.store.seen(Operation::Claim),
        seen,
        "nobody asks for it any more"
    );
    assert_eq!(first.await.unwrap().outcome(), (201, false));
}

/// Two runtimes on one store, the first of which has lost its claim: the first success wins.
#[tokio::test(start_paused = true)]
async fn the_first_success_answers_everybody() {
    for late_fails in [false, true] {
        let it = Fixture::new(faulty());
        // A's claim is told to be there, but is not: as if its lease had lapsed.
        let (key, body) = ("k", if late_fails { "fail" } else { "500" });
        it.store.next(Operation::Claim, Fault::Fail);
        let late = tokio::spawn({
            let slow = it.elsewhere(Router::new().route("/", post(slow_or_failing)));
            async move { send(&slow, keyed("/", key, body)).await }
        });
        until(|| it.runs.count() == 1).await;
        let early = it.send(key, body).await;
        if late_fails {
            // the early run failed as well, so nothing stands
            assert_eq!(early.status, 502);
            assert_eq!(late.await.unwrap().status, 500);
            continue;
        }
        let late = late.await.unwrap();
        assert_eq!(early.outcome(), (201, false));
        assert_eq!(
            (late.outcome(), &late.body),
            ((201, true), &early.body),
            "the record that stands is the answer"
        );
        assert_eq!(it.send(key, body).await.body, early.body);
        assert_eq!(it.runs.count(), 2);
    }
}

#[idempotent]
async fn slow_or_failing(State(runs): State<Runs>, body: String) -> (StatusCode, String) {
    let run = runs.add();
    sleep(Duration::from_secs(2)).await;
    (
        if body == "fail" {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::CREATED
        },
        format!("late {run}"),
    )
}

#[idempotent]
async fn fails_late(State(runs): State<Runs>, _body: String) -> StatusCode {
    let _ = runs.add();
    sleep(Duration::from_secs(2)).await;
    StatusCode::INTERNAL_SERVER_ERROR
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_answered_by_the_success_of_another_run() {
    let it = Fixture::new(faulty());
    it.store.next(Operation::Claim, Fault::Fail);
    let failing = it.elsewhere(Router::new().route("/", post(fails_late)));
    let late = tokio::spawn(async move { send(&failing, keyed("/", "k", "")).await });
    until(|| it.runs.count() == 1).await;
    let early = it.send("k", "").await;
    let late = late.await.unwrap();
    assert_eq!(
        (early.outcome(), late.outcome()),
        ((201, false), (201, true))
    );
    assert_eq!(early.body, late.body);
}
