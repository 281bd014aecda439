use axum::response::IntoResponse;
use idempotent_runtime::idempotent;

#[idempotent]
async fn create() -> impl IntoResponse {
    todo!()
}

fn main() {
    let _ = create;
}
