use idempotent_runtime::idempotent;

struct Order;

#[idempotent]
async fn create() -> Order {
    Order
}

fn main() {
    let _ = axum::Router::<()>::new().route("/", axum::routing::post(create));
}
