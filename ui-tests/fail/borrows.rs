use std::borrow::Cow;

use idempotent_runtime::idempotent;

#[idempotent]
async fn reference(body: &str) -> String {
    body.to_owned()
}

#[idempotent]
async fn elided(body: Cow<'_, str>) -> String {
    body.into_owned()
}

#[idempotent]
async fn parameter<'a>(body: Cow<'a, str>) -> String {
    body.into_owned()
}

#[idempotent]
async fn object(body: Box<dyn Fn(&str) -> String + '_>) -> String {
    body("")
}

fn main() {
    let _ = (reference, elided, parameter, object);
}
