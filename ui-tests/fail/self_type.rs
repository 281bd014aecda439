use axum::Json;
use idempotent_runtime::idempotent;

struct Api;

impl Api {
    const LIMIT: usize = 7;

    #[idempotent]
    async fn in_signature(body: Result<String, Self>) -> String {
        body.unwrap_or_default()
    }

    #[idempotent]
    async fn in_body(Json(n): Json<usize>) -> String {
        format!("{}", n < Self::LIMIT)
    }
}

fn main() {
    let _ = (Api::in_signature, Api::in_body);
}
