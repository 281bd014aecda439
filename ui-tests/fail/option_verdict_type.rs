use axum::http::StatusCode;
use idempotent_runtime::{Verdict, idempotent};

fn by_status(status: StatusCode) -> Verdict {
    if status.is_success() { Verdict::Store } else { Verdict::Release }
}

#[idempotent(verdict = by_status)]
async fn create() {}

fn main() {
    let _ = create;
}
