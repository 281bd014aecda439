use axum::Json;
use idempotent_runtime::idempotent;

#[idempotent(subject = user.id)]
async fn create(Json(body): Json<String>) -> String {
    body
}

fn main() {
    let _ = create;
}
