//! Support for the integration tests.

pub mod http;
pub mod replay;
