//! Everything at once: hang-ups, failures, panics, a full process, stores that await.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use futures_util::FutureExt;
use idempotent_runtime::{
    Caller, IdempotencyRuntime, MemoryStore, Settings, idempotent, testing::Faulty,
};
use idempotent_tests::http::{keyed, send, until};

/// By key: how many run, and whether one has succeeded.
type Watch = Arc<Mutex<HashMap<String, (usize, bool)>>>;

static VIOLATIONS: AtomicUsize = AtomicUsize::new(0);

struct Running(Watch, String);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().get_mut(&self.1).unwrap().0 -= 1;
    }
}

#[idempotent]
async fn work(State(watch): State<Watch>, key: String) -> StatusCode {
    {
        let mut watch = watch.lock().unwrap();
        let (running, succeeded) = watch.entry(key.clone()).or_default();
        if *running > 0 || *succeeded {
            VIOLATIONS.fetch_add(1, Ordering::SeqCst);
        }
        *running += 1;
    }
    let running = Running(Arc::clone(&watch), key.clone());
    tokio::time::sleep(Duration::from_micros(fast(2000))).await;
    match fast(5) {
        0 => panic!("as the test asks"),
        1 => StatusCode::BAD_GATEWAY,
        2 => {
            watch.lock().unwrap().get_mut(&key).unwrap().1 = true;
            drop(running);
            StatusCode::CREATED
        }
        _ => StatusCode::CONFLICT,
    }
}

fn fast(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() % below
}

async fn storm(awaits: bool, watched: bool) {
    let mut store = Faulty::new(MemoryStore::new());
    if awaits {
        store = store.awaiting();
    }
    if !watched {
        store = store.unwatched();
    }
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(
            Settings::default()
                .max_in_flight(8)
                .max_waiters_per_key(3)
                .store_timeout(Duration::from_secs(5))
                .wait(Duration::from_millis(20)),
        )
        .store(store.clone())
        .build()
        .unwrap();
    let app = Router::new()
        .route("/", post(work))
        .with_state(Watch::default())
        .layer(Extension(runtime.clone()));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let app = app.clone();
        drop(clients.spawn(async move {
            for n in 0..150 {
                let key = format!("k{}", n / 10);
                let patience = Duration::from_micros(fast(3000));
                let sent = send(&app, keyed("/", &key, key.clone()));
                let sent = std::panic::AssertUnwindSafe(sent).catch_unwind();
                drop(tokio::time::timeout(patience, sent).await);
            }
        }));
    }
    while clients.join_next().await.is_some() {}
    assert_eq!(VIOLATIONS.load(Ordering::SeqCst), 0, "{awaits} {watched}");
    runtime.drain(Duration::from_secs(5)).await.unwrap();
    until(|| store.store().in_progress() == 0 && runtime.in_flight() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_run_at_a_time_and_none_after_a_success() {
    for (awaits, watched) in [(false, true), (false, false), (true, true), (true, false)] {
        storm(awaits, watched).await;
    }
}
