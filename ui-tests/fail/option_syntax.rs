use idempotent_runtime::idempotent;

#[idempotent(required subject = 1)]
async fn no_comma() {}

#[idempotent(subject = )]
async fn no_value() {}

fn main() {
    let _ = (no_comma, no_value);
}
