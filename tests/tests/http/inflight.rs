//! Duplicates of a request that still runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{Caller, Settings, idempotent};
use idempotent_tests::http::{Embedded, Reply, Runs, hang_up, keyed, send};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends in a task; the reply, and when it came.
fn spawn(app: &Router, key: &str, body: &str) -> JoinHandle<(Reply, Instant)> {
    let (app, request) = (app.clone(), keyed("/", key, body.to_owned()));
    tokio::spawn(async move { (send(&app, request).await, Instant::now()) })
}

/// A handler that works as many milliseconds as its body says, and fails `fail` times first.
#[idempotent]
async fn work(State(runs): State<Runs>, body: String) -> (StatusCode, String) {
    let mut words = body.split(' ').map(|word| word.parse::<u64>().unwrap());
    let (time, fail) = (words.next().unwrap(), words.next().unwrap_or(0));
    let run = runs.add();
    let failing = run as u64 <= fail;
    // a run that fails takes ten times as long
    sleep(millis(if failing { time * 10 } else { time })).await;
    (
        if failing {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::CREATED
        },
        run.to_string(),
    )
}

fn app(settings: Settings) -> (Embedded, Router, Runs) {
    let embedded = Embedded::with(Caller::shared(), settings);
    let runs = Runs::default();
    let router = embedded.on(Router::new()
        .route("/", post(work))
        .with_state(runs.clone()));
    (embedded, router, runs)
}

#[tokio::test(start_paused = true)]
async fn b002_b062_duplicates_wait_for_the_first_and_replay_it() {
    let (_, app, runs) = app(Settings::default());
    let began = Instant::now();
    let first = spawn(&app, "k", "1000");
    sleep(millis(100)).await;
    let duplicates: Vec<_> = (0..10).map(|_| spawn(&app, "k", "1000")).collect();
    let (first, _) = first.await.unwrap();
    assert_eq!(first.outcome(), (201, false));
    for duplicate in duplicates {
        let (reply, at) = duplicate.await.unwrap();
        assert!(reply.is_replay() && reply.body == first.body);
        assert!(
            (millis(1000)..millis(1010)).contains(&(at - began)),
            "woken, not polled: {:?}",
            at - began
        );
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b003_a_waiter_looks_again_before_it_runs() {
    let (embedded, app, runs) = app(Settings::default());
    for round in 0..200 {
        let key = format!("k{round}");
        let first = spawn(&app, &key, "4");
        let mut duplicates = Vec::new();
        for n in 0..30 {
            duplicates.push(spawn(&app, &key, "4"));
            if n % 10 == 0 {
                sleep(millis(1)).await;
            }
        }
        let mut ran = usize::from(!first.await.unwrap().0.is_replay());
        for duplicate in duplicates {
            ran += usize::from(!duplicate.await.unwrap().0.is_replay());
        }
        assert_eq!(ran, 1, "round {round}");
    }
    assert_eq!((runs.count(), embedded.store.in_progress()), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn b009_a_long_run_stays_exclusive_beyond_its_lease() {
    let (_, app, runs) = app(Settings::default().lease(Duration::from_secs(1)));
    let began = Instant::now();
    let first = spawn(&app, "k", "6000");
    let mut duplicates = Vec::new();
    for (at, status, until) in [(200, 409, 5200), (2000, 201, 6000), (4000, 201, 6000)] {
        tokio::time::sleep_until(began + millis(at)).await;
        duplicates.push((spawn(&app, "k", "6000"), status, until));
    }
    assert_eq!(first.await.unwrap().0.outcome(), (201, false));
    for (duplicate, status, until) in duplicates {
        let (reply, at) = duplicate.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.is_replay()),
            (status, status == 201)
        );
        assert!(
            (millis(until)..millis(until + 50)).contains(&(at - began)),
            "{:?}",
            at - began
        );
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn b063_waiting_ends_on_time() {
    let (_, app, runs) = app(Settings::default());
    let began = Instant::now();
    let first = spawn(&app, "k", "20000");
    sleep(millis(1)).await;
    let duplicates: Vec<_> = (0..50).map(|_| spawn(&app, "k", "20000")).collect();
    for duplicate in duplicates {
        let (reply, at) = duplicate.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (409, "urn:idempotency:in-flight")
        );
        assert_eq!(reply.headers["retry-after"], "1");
        assert!(
            (millis(5000)..millis(5100)).contains(&(at - began)),
            "{:?}",
            at - began
        );
    }
    assert_eq!(first.await.unwrap().0.status, 201);
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn b064_one_waiter_takes_over_a_failed_run() {
    let (_, app, runs) = app(Settings::default());
    let first = spawn(&app, "k", "100 1");
    sleep(millis(10)).await;
    let duplicates: Vec<_> = (0..10).map(|_| spawn(&app, "k", "100 1")).collect();
    assert_eq!(first.await.unwrap().0.outcome(), (500, false));
    let mut replayed = 0;
    for duplicate in duplicates {
        let (reply, _) = duplicate.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.text().as_str()),
            (201, "2"),
            "nobody gets the first one's 500"
        );
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((runs.count(), replayed), (2, 9));
}

#[idempotent(wait = "0s")]
async fn impatient(State(runs): State<Runs>) -> String {
    sleep(millis(100)).await;
    runs.add().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_zero_is_one_look() {
    let app = Embedded::shared().on(Router::new()
        .route("/", post(impatient))
        .with_state(Runs::default()));
    let first = spawn(&app, "k", "");
    sleep(millis(1)).await;
    let began = Instant::now();
    let (reply, at) = spawn(&app, "k", "").await.unwrap();
    assert_eq!(
        (reply.status, at - began),
        (StatusCode::CONFLICT, Duration::ZERO)
    );
    assert_eq!(first.await.unwrap().0.outcome(), (200, false));
    assert!(spawn(&app, "k", "").await.unwrap().0.is_replay());
}

#[tokio::test(start_paused = true)]
async fn waiters_are_bounded_by_key() {
    let (_, app, _) = app(Settings::default().max_waiters_per_key(3));
    let began = Instant::now();
    let first = spawn(&app, "k", "1000");
    let elsewhere = spawn(&app, "other", "1000");
    sleep(millis(1)).await;
    let replies = futures_util::future::join_all((0..10).map(|_| spawn(&app, "k", "1000"))).await;
    let at_once = replies
        .iter()
        .flatten()
        .filter(|(reply, at)| reply.status == 409 && *at - began < millis(10))
        .count();
    let replayed = replies
        .iter()
        .flatten()
        .filter(|(reply, _)| reply.is_replay())
        .count();
    assert_eq!((at_once, replayed), (7, 3));
    assert_eq!(
        (
            first.await.unwrap().0.status,
            elsewhere.await.unwrap().0.status
        ),
        (StatusCode::CREATED, StatusCode::CREATED)
    );
    // the places are free again
    assert!(spawn(&app, "k", "1000").await.unwrap().0.is_replay());
}

#[tokio::test(start_paused = true)]
async fn b067_keys_do_not_wait_for_each_other() {
    let (_, app, _) = app(Settings::default());
    let began = Instant::now();
    let replies =
        futures_util::future::join_all((0..50).map(|n| spawn(&app, &format!("k{n}"), "500"))).await;
    assert!(
        replies
            .iter()
            .flatten()
            .all(|(reply, at)| reply.status == 201 && *at - began < millis(510))
    );
}

#[tokio::test(start_paused = true)]
async fn over_max_in_flight_new_requests_are_refused_and_records_still_replay() {
    let (embedded, app, runs) = app(Settings::default().max_in_flight(2));
    assert_eq!(spawn(&app, "done", "1").await.unwrap().0.status, 201);
    let running = [spawn(&app, "a", "1000"), spawn(&app, "b", "1000")];
    sleep(millis(1)).await;
    let (refused, _) = spawn(&app, "c", "1").await.unwrap();
    assert_eq!(
        (refused.status.as_u16(), refused.problem().as_str()),
        (503, "urn:idempotency:overloaded")
    );
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(spawn(&app, "done", "1").await.unwrap().0.is_replay());
    let duplicate = spawn(&app, "a", "1000");
    for run in running {
        assert_eq!(run.await.unwrap().0.outcome(), (201, false));
    }
    assert!(duplicate.await.unwrap().0.is_replay());
    assert_eq!(
        spawn(&app, "c", "1").await.unwrap().0.outcome(),
        (201, false),
        "the refused key is free"
    );
    assert_eq!(
        (
            runs.count(),
            embedded.runtime.in_flight(),
            embedded.store.in_progress()
        ),
        (4, 0, 0)
    );
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[idempotent]
async fn counted(State(runs): State<Runs>) -> String {
    let now = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(now, Ordering::SeqCst);
    sleep(millis(30)).await;
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    runs.add().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_requests_never_exceed_max_in_flight() {
    let embedded = Embedded::with(Caller::shared(), Settings::default().max_in_flight(16));
    let runs = Runs::default();
    let app = Arc::new(
        embedded.on(Router::new()
            .route("/", post(counted))
            .with_state(runs.clone())),
    );
    let clients: Vec<_> = (0..500)
        .map(|n| {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                let request = keyed("/", &format!("k{n}"), "");
                let patience = Duration::from_micros(n % 50 * 100);
                drop(tokio::time::timeout(patience, send(&app, request)).await);
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    embedded
        .runtime
        .drain(Duration::from_secs(10))
        .await
        .unwrap();
    let most = MOST.load(Ordering::SeqCst);
    assert!((1..=16).contains(&most), "{most} at a time");
    assert_eq!(
        (embedded.store.in_progress(), embedded.runtime.in_flight()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_hangs_up_stops_waiting() {
    let (embedded, app, runs) = app(Settings::default());
    let first = spawn(&app, "k", "100 1");
    sleep(millis(10)).await;
    hang_up(&app, keyed("/", "k", "100 1"), millis(500)).await;
    assert_eq!(first.await.unwrap().0.status, 500);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        (runs.count(), embedded.store.len()),
        (1, 0),
        "it did not take over"
    );
}
