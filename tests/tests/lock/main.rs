//! Locks on their own, and a cache with one as a store.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and owns its tasks"
)]

mod exclusion;
mod guard;
mod handler;
mod health;
mod owner;
mod redis;
mod redis_store;
mod runtime;
mod store;
mod striped;
mod table;
