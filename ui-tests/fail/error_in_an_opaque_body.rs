use axum::response::IntoResponse;
use idempotent_runtime::idempotent;

#[idempotent]
async fn moved(body: String) -> impl IntoResponse {
    drop(body);
    body
}

#[idempotent]
async fn borrowed(body: String) -> impl IntoResponse {
    let thread = std::thread::spawn(|| body.len());
    let borrow: &'static str = &body;
    drop((thread, borrow));
}

fn main() {
    let _ = (moved, borrowed);
}
