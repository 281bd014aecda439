//! A record as bytes, for stores that keep bytes.
//!
//! ```text
//! idempotency/1 completed <token> <scheme><digest>      in hexadecimal digits
//! {"status":201,"headers":[["location","/orders/1"]],"body":12}
//! <the body, as many bytes as that says>
//! ```
//!
//! The first line has the same length in every record of this version. Header values are written
//! with one character for each byte (as in ISO 8859-1), so that they need not be UTF-8. A `body` of
//! `null` is one that cannot be replayed.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    error::StoreError,
    fingerprint::Fingerprint,
    record::{Record, RecordBody, Token},
    store::hex,
};

const VERSION: &[u8] = b"idempotency/1 completed ";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    status: u16,
    headers: Vec<(String, String)>,
    body: Option<usize>,
}

/// The bytes of a record that the holder of `token` stores.
pub(crate) fn encode(token: Token, record: &Record) -> Result<Bytes, StoreError> {
    let body: &[u8] = match &record.body {
        RecordBody::Stored(body) => body,
        RecordBody::Unreplayable => &[],
    };
    let headers = record.headers.iter().map(|(name, value)| {
        let value = value.as_bytes().iter().copied().map(char::from).collect();
        (name.as_str().to_owned(), value)
    });
    let meta = Meta {
        status: record.status.as_u16(),
        headers: headers.collect(),
        body: match &record.body {
            RecordBody::Stored(body) => Some(body.len()),
            RecordBody::Unreplayable => None,
        },
    };
    let meta = serde_json::to_vec(&meta).map_err(|error| {
        StoreError::unavailable("a record could not be written as bytes").because(error)
    })?;
    let mut bytes = Vec::with_capacity(128 + meta.len() + body.len());
    bytes.extend_from_slice(VERSION);
    hex::push(&mut bytes, token.as_bytes());
    bytes.push(b' ');
    hex::push(&mut bytes, &[record.fingerprint.scheme()]);
    hex::push(&mut bytes, record.fingerprint.digest());
    bytes.push(b'\n');
    bytes.extend_from_slice(&meta);
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    Ok(bytes.into())
}

/// The record in these bytes, and the token of who stored it. What is anything else is unreadable:
/// something stands there, and nobody knows what.
pub(crate) fn decode(bytes: &Bytes) -> Result<(Token, Record), StoreError> {
    let Some(rest) = bytes.strip_prefix(VERSION) else {
        return Err(StoreError::unreadable(
            "what stands at the key is no record of this version: another program writes there, or another version of this one",
        ));
    };
    read(bytes, rest).ok_or_else(|| {
        StoreError::unreadable("the record at the key is damaged: it was cut off or changed")
    })
}

/// `rest` is the end of `bytes`, after the version.
fn read(bytes: &Bytes, rest: &[u8]) -> Option<(Token, Record)> {
    let (token, rest) = digits::<16>(rest)?;
    let (scheme, rest) = digits::<1>(rest.strip_prefix(b" ")?)?;
    let (digest, rest) = digits::<32>(rest)?;
    let rest = rest.strip_prefix(b"\n")?;
    let end = memchr::memchr(b'\n', rest)?;
    let (meta, body) = rest.split_at_checked(end)?;
    let body = body.strip_prefix(b"\n")?;
    let meta: Meta = serde_json::from_slice(meta).ok()?;
    let headers: Option<Vec<_>> = meta.headers.iter().map(header).collect();
    let body = match meta.body {
        Some(length) if length == body.len() => RecordBody::Stored(bytes.slice_ref(body)),
        None if body.is_empty() => RecordBody::Unreplayable,
        Some(_) | None => return None,
    };
    let [scheme] = scheme;
    let record = Record::new(
        Fingerprint::from_parts(scheme, digest),
        StatusCode::from_u16(meta.status).ok()?,
        headers?,
        body,
    );
    Some((Token::from_bytes(token), record))
}

fn header((name, value): &(String, String)) -> Option<(HeaderName, HeaderValue)> {
    let value = value.chars().map(|c| u8::try_from(u32::from(c)).ok());
    let value: Option<Vec<u8>> = value.collect();
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name, HeaderValue::from_bytes(&value?).ok()?))
}

/// `N` bytes in hexadecimal digits, and what follows them.
fn digits<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    let (digits, rest) = text.split_at_checked(2 * N)?;
    Some((hex::read(digits)?, rest))
}

#[cfg(test)]
mod tests {
    use std::str;

    use axum::http::header;

    use super::*;
    use crate::error::StoreErrorKind;

    fn record(body: RecordBody) -> Record {
        let headers = [
            (header::LOCATION, HeaderValue::from_static("/orders/1")),
            (
                header::ETAG,
                HeaderValue::from_bytes(b"\"\x80\xff\t\"").unwrap(),
            ),
            (header::LINK, HeaderValue::from_static("</a>")),
            (header::LINK, HeaderValue::from_static("")),
        ];
        let fingerprint = Fingerprint::from_parts(0xfe, [0xab; 32]);
        Record::new(fingerprint, StatusCode::CREATED, headers, body)
    }

    #[test]
    fn what_goes_in_comes_out() {
        let all: Vec<u8> = (0..=255).collect();
        for body in [
            RecordBody::Unreplayable,
            RecordBody::Stored(Bytes::new()),
            RecordBody::Stored(Bytes::from_static(b"\n\n{}\n")),
            RecordBody::Stored(all.into()),
        ] {
            let (token, record) = (Token::unique(), record(body));
            let bytes = encode(token, &record).unwrap();
            assert_eq!(decode(&bytes).unwrap(), (token, record));
        }
    }

    #[test]
    fn it_can_be_read_by_people() {
        let body = RecordBody::Stored(Bytes::from_static(b"{\"id\":1}"));
        let mut record = record(body);
        record.headers = Box::new([(header::LOCATION, HeaderValue::from_static("/orders/1"))]);
        let bytes = encode(Token::from_bytes([1; 16]), &record).unwrap();
        let text = str::from_utf8(&bytes).unwrap();
        let expected = format!(
            "idempotency/1 completed {} fe{}\n{}\n{}",
            "01".repeat(16),
            "ab".repeat(32),
            r#"{"status":201,"headers":[["location","/orders/1"]],"body":8}"#,
            r#"{"id":1}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_cut_off_or_changed_is_unreadable() {
        let body = RecordBody::Stored(Bytes::from_static(b"a body"));
        let bytes = encode(Token::unique(), &record(body)).unwrap();
        let unreadable = |bytes: Vec<u8>| {
            let kind = decode(&bytes.into()).map_err(|error| error.kind());
            matches!(kind, Err(StoreErrorKind::Unreadable))
        };
        for end in 0..bytes.len() {
            assert!(unreadable(bytes.get(..end).unwrap().to_vec()), "{end}");
        }
        assert!(unreadable([&*bytes, b"x"].concat()));
        for foreign in ["", "42", "idempotency/2 completed ", "{\"status\":201}"] {
            assert!(unreadable(foreign.into()), "{foreign}");
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for (from, to) in [
            ("\"status\":201", "\"status\":20"),
            ("\"body\":6", "\"body\":null"),
            ("\"body\":6", "\"body\":6,\"more\":1"),
            ("completed ", "completed +"),
            ("location", "loca tion"),
        ] {
            assert!(unreadable(text.replacen(from, to, 1).into()), "{to}");
        }
    }
}
