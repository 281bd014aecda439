use idempotent_runtime::idempotent;

struct Api;

impl Api {
    #[idempotent]
    async fn create(&self) -> Option<Self> {
        None
    }
}

fn main() {
    let _ = Api.create();
}
