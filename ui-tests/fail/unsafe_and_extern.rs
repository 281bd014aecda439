use idempotent_runtime::idempotent;

#[idempotent]
async unsafe fn create() {}

#[idempotent]
async extern "C" fn delete() {}

fn main() {
    let _ = (create, delete);
}
