//! What an `#[idempotent]` handler does at the HTTP edge, one behaviour a file. Tests named after
//! a failure of another library carry its number in our list.
#![expect(
    clippy::redundant_closure_for_method_calls,
    clippy::unit_arg,
    clippy::too_many_lines,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and owns its tasks"
)]

mod body;
mod contract;
mod disconnect;
mod extractors;
mod fingerprint;
mod inflight;
mod key;
mod outcome;
mod refusal;
mod replay;
mod replicas;
mod scope;
mod store_failure;
