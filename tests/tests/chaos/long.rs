//! A handler that works ten times as long as its lease, and duplicates on another copy.

use std::time::Duration;

use idempotent_tests::{
    chaos::{Copy, now, pause, rows},
    redis::RedisServer,
};
use reqwest::{Client, Response};
use serde_json::json;
use tokio::task::JoinSet;

const KEYS: usize = 100;

async fn order(http: &Client, url: &str, key: &str) -> Response {
    let request = http
        .post(format!("{url}/orders"))
        .header("Idempotency-Key", format!("\"{key}\""))
        .json(&json!({ "item": key, "quantity": 1, "delay_ms": 10_000 }));
    request.send().await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_on_another_copy_never_run_a_handler_of_ten_leases() {
    let _machine = crate::MACHINE.lock().await;
    let redis = RedisServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    let args = ["--lease", "1s", "--wait", "2s", "--store-timeout", "1s"];
    let args = [&args[..], &["--on-store-failure", "closed"]].concat();
    let one = Copy::start(&redis, dir.path(), "one", &args);
    let two = Copy::start(&redis, dir.path(), "two", &args);
    let http = Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(30))
        .build()
        .expect("a client");
    let start = now();
    let mut sent = JoinSet::new();
    for number in 0..KEYS {
        let key = format!("long-{number}");
        let (one, two) = (one.url().expect("it lives"), two.url().expect("it lives"));
        let http = http.clone();
        sent.spawn(async move {
            let first = async {
                let response = order(&http, &one, &key).await;
                assert_eq!(response.status(), 201, "{key}");
                response.text().await.expect("a body")
            };
            // As a client does that is told to come again.
            let duplicate = async {
                pause(200).await;
                let mut refused = 0;
                loop {
                    let response = order(&http, &two, &key).await;
                    if response.status() == 409 {
                        refused += 1;
                        pause(100).await;
                        continue;
                    }
                    assert_eq!(response.status(), 201, "{key}");
                    assert!(
                        response.headers().contains_key("x-idempotent-replay"),
                        "{key}"
                    );
                    break (refused, response.text().await.expect("a body"));
                }
            };
            let (answer, (refused, replay)) = tokio::join!(first, duplicate);
            assert_eq!(answer, replay, "{key}");
            assert!(
                refused >= 3,
                "{key}: only {refused} duplicates came too early"
            );
        });
    }
    while let Some(ended) = sent.join_next().await {
        ended.expect("no second run");
    }
    assert!(now() > start + 10_000, "the handlers were faster than that");
    let rows = rows(&http, &one.url().expect("it lives")).await;
    assert_eq!(rows.len(), KEYS, "one run for each key");
}
