//! Support for the integration tests.

pub mod replay;

pub mod source;
