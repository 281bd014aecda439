use idempotent_runtime::idempotent;

#[idempotent(required = 1, retention = "1y", wait = "a")]
fn create<'a>(body: &'a str) -> axum::response::Redirect {
    axum::response::Redirect::to(body)
}

fn main() {}
