//! What an `#[idempotent]` handler does at the HTTP edge, one behaviour a file. Tests named after
//! a failure of another library carry its number in our list.

mod body;
mod contract;
mod disconnect;
mod extractors;
mod fingerprint;
mod inflight;
mod key;
mod outcome;
mod replay;
mod replicas;
mod scope;
mod store_failure;
mod unreadable;
