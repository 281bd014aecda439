use idempotent_runtime::non_idempotent;

#[non_idempotent]
async fn no_reason() {}

#[non_idempotent("  ")]
async fn blank() {}

#[non_idempotent(because)]
async fn not_text() {}

#[non_idempotent("why")]
#[non_idempotent("why")]
async fn twice() {}

fn main() {
    let _ = axum::Router::<()>::new()
        .route("/a", axum::routing::post(no_reason).put(blank))
        .route("/b", axum::routing::post(not_text).put(twice));
}
