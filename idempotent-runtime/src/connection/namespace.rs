//! What separates services on one server.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The most bytes a namespace may have; it is part of every key.
const LONGEST: usize = 64;

/// The first part of every key of a service.
#[derive(Debug, Clone)]
pub(crate) struct Namespace(Arc<str>);

impl Namespace {
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}');
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(plain) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the namespace {name:?} is not 1 to {LONGEST} characters of printable ASCII without spaces and braces: name the service, such as `orders-api`"
                ),
            ));
        }
        Ok(Self(name.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
