use idempotent_runtime::idempotent;

#[idempotent(retention = "30m", wait = "61s", lease = "500ms")]
async fn too_little() {}

#[idempotent(retention = "8days", lease = "61m")]
async fn too_much() {}

fn main() {
    let _ = (too_little, too_much);
}
