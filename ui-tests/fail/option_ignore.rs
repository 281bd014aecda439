use idempotent_runtime::idempotent;

#[idempotent(ignore("/ok", "sentAt", "", "/a~2b", "/a~", sent_at, 5))]
async fn pointers() {}

#[idempotent(ignore())]
async fn none() {}

#[idempotent(ignore = "/sentAt")]
async fn not_a_list() {}

fn main() {
    let _ = (pointers, none, not_a_list);
}
