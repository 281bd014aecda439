use idempotent_runtime::idempotent;

#[idempotent(crate = crate::nowhere)]
async fn create() {}

fn main() {
    let _ = create;
}
