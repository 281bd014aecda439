use idempotent_runtime::idempotent;

#[idempotent(required subject = 1)]
async fn no_comma() {}

#[idempotent(subject = )]
async fn no_value() {}

#[idempotent(,)]
async fn no_option() {}

fn main() {
    let _ = (no_comma, no_value, no_option);
}
