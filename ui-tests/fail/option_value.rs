use idempotent_runtime::idempotent;

#[idempotent(
    required = true,
    retention,
    wait = 5,
    lease = "soon",
    name = "  ",
    on_store_failure = "maybe",
    on_lost_run = "again",
    verdict = "path",
    subject,
    crate = 1,
    "literal"
)]
async fn create() {}

fn main() {
    let _ = create;
}
