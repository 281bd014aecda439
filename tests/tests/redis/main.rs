//! The Redis store, on servers of its own.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail by panicking too"
)]

mod bench;
mod fake;

mod access;
mod answers;
mod cancel;
mod cluster;
mod contract;
mod disturbed;
mod foreign;
mod full;
mod lost;
mod outage;
mod refusing;
mod round_trips;
mod scripts;
mod sentinel;
mod servers;
mod start;
mod stored;
mod tls;
mod watching;
