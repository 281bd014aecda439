use axum::{Json, extract::State};
use idempotent_runtime::idempotent;

#[idempotent]
async fn create(Json(body): Json<String>, State(()): State<()>) -> String {
    body
}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
}
