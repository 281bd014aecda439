use axum::Json;
use idempotent_runtime::idempotent;

#[idempotent(subjet = body, ttl = "24h", required)]
async fn create(Json(body): Json<String>) -> String {
    body
}

// The handler is there all the same, with the options that are right.
async fn unit_test() -> String {
    create(Json(String::new()).into()).original().await
}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
    let _ = unit_test();
}
