//! Support for the integration tests.

pub mod model;
pub mod replay;
