//! What stands where: `<namespace>:{<64 hexadecimal digits>}`.

use crate::{connection::Namespace, key::StorageKey, record::Token, store::hex};

/// Where a request is stored. In braces, so that a cluster keeps what is staged for it in the same
/// slot.
pub(super) fn stored(namespace: &Namespace, key: &StorageKey) -> String {
    let namespace = namespace.as_str();
    let mut stored = Vec::with_capacity(namespace.len() + 3 + 64);
    stored.extend_from_slice(namespace.as_bytes());
    stored.extend_from_slice(b":{");
    hex::push(&mut stored, key.as_bytes());
    stored.push(b'}');
    text(stored)
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
