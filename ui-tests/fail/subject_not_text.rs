use axum::Json;
use idempotent_runtime::idempotent;
use serde::Deserialize;

#[derive(Deserialize)]
struct User {
    id: u32,
}

#[idempotent(subject = user)]
async fn create(Json(user): Json<User>) -> String {
    user.id.to_string()
}

fn main() {
    let _ = create;
}
