//! What a service promises whose replicas share a Redis: the known failures of others, over a real
//! server and in real time. Tests are named by their number in our list.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answer;
mod claim;
mod lease;
mod outage;
mod outcome;
mod request;
mod wait;

use std::time::Duration;

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::http::Runs;
use tokio::time::sleep;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Works as many milliseconds as the body says.
#[idempotent]
async fn work(State(runs): State<Runs>, body: String) -> (StatusCode, String) {
    let run = runs.add();
    sleep(millis(body.parse().unwrap_or_default())).await;
    (StatusCode::CREATED, format!("run {run}"))
}

fn works(runs: &Runs) -> Router {
    let routes = Router::new().route("/", post(work));
    routes.with_state(runs.clone())
}
