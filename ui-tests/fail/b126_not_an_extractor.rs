use idempotent_runtime::idempotent;

struct NotAnExtractor;

#[idempotent]
async fn create(_: NotAnExtractor, body: String) -> String {
    body
}

#[axum::debug_handler]
#[idempotent]
async fn above(_: NotAnExtractor, body: String) -> String {
    body
}

#[idempotent]
#[axum::debug_handler]
async fn below(_: NotAnExtractor, body: String) -> String {
    body
}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
}
