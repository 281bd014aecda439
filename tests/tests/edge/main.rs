//! Edge cases of a request with a key: bodies and heads of unusual shape, shutdown, a full store,
//! and everything at once.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and owns its tasks"
)]

mod body;
mod drain;
mod head;
mod memory;
mod response;
mod stress;
