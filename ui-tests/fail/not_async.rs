use idempotent_runtime::idempotent;

#[idempotent]
fn create() -> String {
    String::new()
}

fn main() {
    let _ = create();
}
