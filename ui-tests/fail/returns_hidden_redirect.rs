use axum::{http::StatusCode, response::{IntoResponse, Redirect}};
use idempotent_runtime::idempotent;

#[idempotent]
async fn plain() -> impl IntoResponse {
    Redirect::to("/")
}

#[idempotent]
async fn in_result() -> impl IntoResponse {
    Ok::<_, StatusCode>((StatusCode::SEE_OTHER, Redirect::to("/")))
}

fn main() {}
