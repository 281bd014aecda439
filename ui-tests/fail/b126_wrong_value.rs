use idempotent_runtime::idempotent;

#[idempotent]
async fn create() -> String {
    ""
}

fn main() {}
