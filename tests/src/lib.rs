//! Support for the integration tests, and the model of the protocol.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod chaos;
pub mod example;
pub mod fleet;
pub mod http;
pub mod locked;
pub mod log;
pub mod model;
pub mod proxy;
pub mod redis;
pub mod replay;
pub mod replica;
pub mod source;
pub mod store;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
