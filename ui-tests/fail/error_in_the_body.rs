use axum::{Json, http::StatusCode};
use idempotent_runtime::idempotent;

#[idempotent(subject = body.len())]
async fn create(Json(body): Json<String>) -> Result<String, StatusCode> {
    let n: u8 = body.parse()?;
    missing(n);
    Ok(body)
}

fn main() {}
