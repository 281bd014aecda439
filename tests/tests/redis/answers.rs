//! A server whose answers to commands are errors of every kind, or make no sense.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router, extract::State, routing::post};
use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
use idempotent_tests::http::{Runs, keyed, send};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{bench::store_at, fake::Fake};

#[idempotent]
async fn open(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent(on_store_failure = "closed")]
async fn closed(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

const ANSWERS: [&str; 20] = [
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-BUSY Redis is busy running a script\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-MASTERDOWN Link with MASTER is down\r\n",
    "-MOVED 1 127.0.0.1:1\r\n",
    "-ASK 1 127.0.0.1:1\r\n",
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "-CLUSTERDOWN The cluster is down\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-NOPERM this user has no permissions\r\n",
    "-EXECABORT Transaction discarded\r\n",
    "-\r\n",
    "+OK\r\n",
    ":-7\r\n",
    "$3\r\nabc\r\n",
    "*2\r\n:1\r\n$-1\r\n",
    "!!\r\n",
];

fn is_asked(command: &[String]) -> bool {
    let name = command.first().map(|name| name.to_uppercase());
    matches!(
        name.as_deref(),
        Some("SET" | "GET" | "GETRANGE" | "EVAL" | "EVALSHA")
    )
}

/// It runs without the guarantee or is refused, at once, and is guarded again when the server is well.
#[tokio::test]
async fn no_answer_of_a_server_stops_a_service() {
    for wrong in ANSWERS {
        let says = Arc::new(Mutex::new(Some(wrong)));
        let fake = Fake::start({
            let says = Arc::clone(&says);
            move |command| {
                let (asked, says) = (is_asked(command), *says.lock());
                let set = command.first().is_some_and(|name| name == "SET");
                let well = if set { "$-1\r\n" } else { ":1\r\n" };
                asked.then(|| says.unwrap_or(well).to_owned())
            }
        });
        let runtime = IdempotencyRuntime::builder().caller(Caller::shared());
        let runtime = runtime.store(store_at(&fake.url()).await).build();
        let runtime = runtime.expect("settings");
        let runs = Runs::default();
        let app = Router::new()
            .route("/open", post(open))
            .route("/closed", post(closed))
            .with_state(runs.clone())
            .layer(Extension(runtime.clone()));
        for n in 0..12 {
            let began = Instant::now();
            let key = format!("k{n}");
            let reply = send(&app, keyed("/closed", &key, "x")).await;
            assert_eq!(reply.status, 503, "{wrong}");
            assert_eq!(runs.count(), 0, "{wrong}");
            assert!(began.elapsed() < Duration::from_secs(1), "{wrong}");
        }
        assert!(!runtime.health().await.is_guarded(), "{wrong}");
        for n in 0..12 {
            let reply = send(&app, keyed("/open", &format!("k{n}"), "x")).await;
            assert!(matches!(reply.status.as_u16(), 200 | 503), "{wrong}");
            assert!(!reply.is_replay(), "{wrong}");
        }
        *says.lock() = None;
        let began = Instant::now();
        while !runtime.health().await.is_guarded() {
            assert!(began.elapsed() < Duration::from_secs(3), "{wrong}");
            sleep(Duration::from_millis(20)).await;
        }
        let drained = runtime.drain(Duration::from_secs(35)).await;
        drained.expect("all is reported");
        let reply = send(&app, keyed("/closed", "new", "x")).await;
        assert_eq!(reply.status, 200, "{wrong}");
    }
}
