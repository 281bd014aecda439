use idempotent_runtime::idempotent;

#[idempotent]
#[idempotent_runtime::idempotent(required)]
async fn create() {}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
}
