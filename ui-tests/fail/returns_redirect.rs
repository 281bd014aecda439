use axum::{Json, http::StatusCode, response::Redirect};
use idempotent_runtime::idempotent;

type ApiResult<T> = Result<T, StatusCode>;
type Checked<T> = Result<T, Redirect>;

#[idempotent]
async fn plain() -> Redirect {
    Redirect::to("/")
}

#[idempotent]
async fn as_error() -> Result<(StatusCode, Json<u8>), Redirect> {
    Err(Redirect::to("/"))
}

#[idempotent]
async fn in_tuple() -> (StatusCode, Redirect) {
    (StatusCode::SEE_OTHER, Redirect::to("/"))
}

#[idempotent]
async fn behind_an_alias() -> ApiResult<Redirect> {
    Ok(Redirect::to("/"))
}

#[idempotent]
async fn error_behind_an_alias() -> Checked<String> {
    Err(Redirect::to("/"))
}

#[idempotent]
async fn generic<T: Send + 'static>() -> Result<Json<Vec<u8>>, Redirect> {
    Err(Redirect::to(std::any::type_name::<T>()))
}

fn main() {}
