//! Several instances of a service on one store, and instances that die.

use std::time::Duration;

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyRuntime, MemoryStore, Settings, idempotent,
    store::Store,
    testing::{Fault, Faulty, LeasedStore},
};
use idempotent_tests::http::{Reply, Runs, keyed, send};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Works as many milliseconds as the body says.
#[idempotent]
async fn work(State(runs): State<Runs>, body: String) -> (StatusCode, String) {
    let run = runs.add();
    sleep(millis(body.parse().unwrap_or_default())).await;
    (StatusCode::CREATED, run.to_string())
}

/// An instance of its own: runtime, router and handle to the store.
fn instance(store: impl Store, runs: &Runs) -> Router {
    instance_with(store, runs, Duration::from_secs(2))
}

fn instance_with(store: impl Store, runs: &Runs, lease: Duration) -> Router {
    let settings = Settings::default().lease(lease);
    let builder = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(settings);
    let runtime = builder.store(store).build().unwrap();
    Router::new()
        .route("/", post(work))
        .with_state(runs.clone())
        .layer(Extension(runtime))
}

fn spawn(app: &Router, key: &str, body: &'static str) -> JoinHandle<Reply> {
    let (app, request) = (app.clone(), keyed("/", key, body));
    tokio::spawn(async move { send(&app, request).await })
}

#[tokio::test(start_paused = true)]
async fn b001_forty_at_once_on_two_instances_are_one_run() {
    let runs = Runs::default();
    let store = Faulty::new(LeasedStore::new()).awaiting();
    let instances = [instance(store.clone(), &runs), instance(store, &runs)];
    let replies: Vec<_> = (0..40)
        .map(|n| spawn(&instances[n % 2], "k", "300"))
        .collect();
    let mut replayed = 0;
    for reply in replies {
        let reply = reply.await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.text().as_str()), (201, "1"));
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((runs.count(), replayed), (1, 39));
}

#[tokio::test]
async fn b004_what_one_instance_stores_another_finds() {
    let runs = Runs::default();
    let embedded = MemoryStore::new();
    let leased = LeasedStore::new();
    for n in 0..2 {
        let instance = || {
            if n == 0 {
                instance(embedded.clone(), &runs)
            } else {
                instance(leased.clone(), &runs)
            }
        };
        assert_eq!(
            send(&instance(), keyed("/", "k", "0")).await.outcome(),
            (201, false)
        );
        // another one, and the first after a restart
        assert_eq!(
            send(&instance(), keyed("/", "k", "0")).await.outcome(),
            (201, true)
        );
        assert_eq!(send(&instance(), keyed("/", "k", "1")).await.status, 422);
        assert_eq!(runs.count(), n + 1);
    }
}

/// An instance dies 300 ms into its run. Its claim stands for the lease of 2 s, and not for
/// the retention of 24 h.
#[tokio::test(start_paused = true)]
async fn b018_an_instance_that_dies_frees_its_key_after_the_lease() {
    let runs = Runs::default();
    let store = LeasedStore::new();
    let dying = Faulty::new(store.clone());
    let began = Instant::now();
    let died = spawn(&instance(dying.clone(), &runs), "k", "1500");
    sleep(millis(300)).await;
    assert_eq!(runs.count(), 1);
    // nothing is heard of it any more
    dying.down(Fault::Hang);
    died.abort();
    let living = instance(store, &runs);
    sleep_until(began + millis(1000)).await;
    let early = spawn(&living, "k", "1500");
    sleep_until(began + millis(1999)).await;
    assert_eq!(runs.count(), 1, "not before the lease is over");
    sleep_until(began + millis(3000)).await;
    assert_eq!(runs.count(), 2, "soon after it is");
    let late = spawn(&living, "k", "1500");
    let (early, late) = (early.await.unwrap(), late.await.unwrap());
    assert_eq!(
        (early.outcome(), late.outcome()),
        ((201, false), (201, true))
    );
    assert_eq!((runs.count(), early.body == late.body), (2, true));
    assert!(began.elapsed() <= millis(6000), "{:?}", began.elapsed());
}

/// Answers 500 after two seconds.
#[idempotent]
async fn fail_late(State(runs): State<Runs>, _body: String) -> StatusCode {
    let _ = runs.add();
    sleep(millis(2000)).await;
    StatusCode::INTERNAL_SERVER_ERROR
}

/// A is cut off until its lease has lapsed and B has taken over, then A fails and releases: that
/// frees nothing of B's.
#[tokio::test(start_paused = true)]
async fn b008_a_release_frees_only_its_own_claim() {
    let runs = Runs::default();
    let store = LeasedStore::new();
    let link = Faulty::new(store.clone());
    let builder = IdempotencyRuntime::builder().caller(Caller::shared());
    let a = builder
        .settings(Settings::default().lease(Duration::from_secs(1)))
        .store(link.clone())
        .build()
        .unwrap();
    let a = Router::new()
        .route("/", post(fail_late))
        .with_state(runs.clone())
        .layer(Extension(a));
    let others = instance_with(store, &runs, Duration::from_secs(30));
    let began = Instant::now();
    let a = spawn(&a, "k", "2000");
    sleep_until(began + millis(100)).await;
    link.down(Fault::Fail);
    sleep_until(began + millis(1500)).await;
    let b = spawn(&others, "k", "2000");
    sleep_until(began + millis(1900)).await;
    assert_eq!(runs.count(), 2, "B runs while A does");
    link.heal();
    sleep_until(began + millis(2200)).await;
    assert_eq!(a.await.unwrap().outcome(), (500, false));
    let c = spawn(&others, "k", "2000");
    let (b, c) = (b.await.unwrap(), c.await.unwrap());
    assert_eq!((b.outcome(), c.outcome()), ((201, false), (201, true)));
    assert_eq!((runs.count(), b.body), (2, c.body));
}
