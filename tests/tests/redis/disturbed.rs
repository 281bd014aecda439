//! A server that is disturbed all the time, and loses nothing.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{Caller, IdempotencyRuntime, Settings, idempotent};
use idempotent_tests::{
    http::{keyed, send},
    redis::RedisServer,
};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time};

use super::bench::{keys, store};

const CLIENTS: usize = 64;
const KEYS: usize = 60;

type Effects = Arc<Mutex<HashMap<String, usize>>>;

#[idempotent(on_store_failure = "closed", lease = "30s")]
async fn create(State(effects): State<Effects>, body: String) -> (StatusCode, String) {
    time::sleep(Duration::from_millis(20)).await;
    let mut effects = effects.lock();
    let effect = effects.entry(body.clone()).or_default();
    *effect += 1;
    (StatusCode::CREATED, format!("{body} {effect}"))
}

async fn replica(server: &RedisServer, effects: &Effects) -> (Router, IdempotencyRuntime) {
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .settings(Settings::default().wait(Duration::from_secs(1)))
        .store(store(server).await)
        .build()
        .expect("settings");
    let app = Router::new()
        .route("/", post(create))
        .with_state(Arc::clone(effects))
        .layer(Extension(runtime.clone()));
    (app, runtime)
}

/// The same key from many clients at once, until each has an answer.
async fn client(app: Router) -> Vec<String> {
    let mut answers = Vec::new();
    for key in 0..KEYS {
        let key = format!("k{key}");
        let answer = loop {
            let reply = send(&app, keyed("/", &key, key.clone())).await;
            match reply.status.as_u16() {
                201 => break reply.text(),
                409 | 503 => time::sleep(Duration::from_millis(20)).await,
                other => panic!("{other}: {}", reply.text()),
            }
        };
        answers.push(answer);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_key_takes_effect_once() {
    let server = Arc::new(RedisServer::with(&["enable-debug-command yes"]));
    let effects = Effects::default();
    let mut replicas = Vec::new();
    for _ in 0..2 {
        replicas.push(replica(&server, &effects).await);
    }
    let over = Arc::new(AtomicBool::new(false));
    let disturbing = std::thread::spawn({
        let (server, over) = (Arc::clone(&server), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Relaxed) {
                server.cli(&["SCRIPT", "FLUSH"]);
                server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                server.cli(&["CLIENT", "PAUSE", "120", "WRITE"]);
                server.cli(&["SCRIPT", "FLUSH"]);
                server.cli(&["DEBUG", "SLEEP", "0.11"]);
                server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
                server.cli(&["CLIENT", "PAUSE", "50", "ALL"]);
            }
        }
    });
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let (app, _) = replicas.get(n % 2).expect("two");
        clients.spawn(client(app.clone()));
    }
    let all = time::timeout(Duration::from_mins(2), clients.join_all()).await;
    over.store(true, Ordering::Relaxed);
    disturbing.join().expect("it disturbs to the end");
    for answers in all.expect("each client has its answers") {
        for (key, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, format!("k{key} 1"));
        }
    }
    for (_, runtime) in &replicas {
        runtime
            .drain(Duration::from_secs(30))
            .await
            .expect("a drain");
        assert_eq!(runtime.health().await.pending_bytes, 0);
    }
    assert!(effects.lock().values().all(|&effects| effects == 1));
    // A record for each key, and nothing besides that has no end.
    let stand = keys(&server);
    assert!(stand.iter().all(|(_, left)| *left > 0), "{stand:?}");
}
