//! A server that can be read, and takes no writes.

use axum::{Extension, Router, routing::post};
use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
use idempotent_tests::{
    http::{keyed, send},
    redis::RedisServer,
};

use super::bench::store;

#[idempotent]
async fn echo(body: String) -> String {
    body
}

async fn service(server: &RedisServer) -> (Router, IdempotencyRuntime) {
    let runtime = IdempotencyRuntime::builder().caller(Caller::shared());
    let runtime = runtime
        .store(store(server).await)
        .build()
        .expect("settings");
    let app = Router::new().route("/", post(echo));
    (app.layer(Extension(runtime.clone())), runtime)
}

fn refuse(server: &RedisServer) {
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
}

#[tokio::test]
async fn a_record_that_can_be_read_is_replayed() {
    let server = RedisServer::start();
    let (app, _) = service(&server).await;
    assert_eq!(
        send(&app, keyed("/", "k", "x")).await.outcome(),
        (200, false)
    );
    refuse(&server);
    assert_eq!(
        send(&app, keyed("/", "k", "x")).await.outcome(),
        (200, true)
    );
}

#[tokio::test]
async fn nothing_is_guarded_by_a_server_that_takes_no_claim() {
    let server = RedisServer::start();
    let (app, runtime) = service(&server).await;
    assert!(runtime.health().await.is_guarded());
    refuse(&server);
    assert!(!runtime.health().await.is_guarded());
    for n in 0..10 {
        let reply = send(&app, keyed("/", &format!("k{n}"), "x")).await;
        assert_eq!(reply.outcome(), (200, false));
    }
    assert!(!runtime.health().await.is_guarded());
}
