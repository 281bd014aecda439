//! What stands where: `<namespace>:{<64 hexadecimal digits>}`.

use std::sync::Arc;

use super::hex;
use crate::{
    error::{Error, ErrorKind},
    key::StorageKey,
    record::Token,
};

/// The most bytes a namespace may have; it is part of every key.
const LONGEST: usize = 64;

/// What separates services on one server.
#[derive(Clone)]
pub(super) struct Namespace(Arc<str>);

impl Namespace {
    pub(super) fn new(name: &str) -> Result<Self, Error> {
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

    /// Where a request is stored. In braces, so that a cluster keeps what is staged for it in the
    /// same slot.
    pub(super) fn key(&self, key: &StorageKey) -> String {
        let mut stored = Vec::with_capacity(self.0.len() + 3 + 64);
        stored.extend_from_slice(self.0.as_bytes());
        stored.extend_from_slice(b":{");
        hex::push(&mut stored, key.as_bytes());
        stored.push(b'}');
        text(stored)
    }
}

/// Where the record of a run is put, before it takes the place of its claim.
pub(super) fn staged(key: &str, token: Token) -> String {
    let mut stored = Vec::with_capacity(key.len() + 1 + 32);
    stored.extend_from_slice(key.as_bytes());
    stored.push(b':');
    hex::push(&mut stored, token.as_bytes());
    text(stored)
}

fn text(ascii: Vec<u8>) -> String {
    String::from_utf8(ascii).unwrap_or_default()
}
