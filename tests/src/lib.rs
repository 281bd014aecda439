//! Support for the integration tests, and the model of the protocol.

pub mod http;
pub mod model;
pub mod replay;
pub mod source;
