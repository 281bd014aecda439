use idempotent_runtime::idempotent;

#[idempotent(retention = "24h", required, retention = "2h", required)]
async fn create() {}

fn main() {
    let _ = create;
}
