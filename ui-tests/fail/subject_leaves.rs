use axum::{extract::Path, http::StatusCode};
use idempotent_runtime::idempotent;

async fn look_up(id: u8) -> String {
    id.to_string()
}

#[idempotent(subject = look_up(id).await)]
async fn waits(Path(id): Path<u8>) {
    let _ = id;
}

#[idempotent(subject = id.parse::<u8>()?, wait = "a")]
async fn gives_up(Path(id): Path<String>) -> Result<(), StatusCode> {
    drop(id);
    Ok(())
}

#[idempotent(subject = { return; })]
async fn returns(Path(id): Path<u8>) {
    let _ = id;
}

/// What leaves a closure stays in the expression.
#[idempotent(subject = (|| { Some(id.checked_add(1)?) })().unwrap_or_default())]
async fn stays(Path(id): Path<u8>) {
    let _ = id;
}

fn main() {
    let _ = (waits, gives_up, returns, stays, look_up);
}
