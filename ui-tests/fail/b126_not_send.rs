use std::rc::Rc;

use idempotent_runtime::idempotent;

#[idempotent]
async fn create() -> String {
    let counter = Rc::new(1);
    std::future::ready(()).await;
    counter.to_string()
}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
}
