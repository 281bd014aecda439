use idempotent_runtime::{idempotent, non_idempotent};

#[idempotent]
struct Create;

#[non_idempotent("why")]
struct Delete;

fn main() {
    let _ = (Create, Delete);
}
