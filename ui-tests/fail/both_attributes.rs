use idempotent_runtime::{idempotent, non_idempotent};

#[idempotent]
#[non_idempotent("it only reads")]
async fn one() {}

#[non_idempotent("it only reads")]
#[idempotent]
async fn other() {}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(one).put(other));
}
