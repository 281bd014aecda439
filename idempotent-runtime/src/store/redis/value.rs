//! What a claim and a record look like at their key.
//!
//! ```text
//! IDP1P <token> <scheme>:<digest> <kept>        a claim
//! IDP1C <token> <scheme>:<digest> <kept>        a record, and then
//! {"status":201,"headers":[["location","/orders/7"]]}
//! <the body as it is>
//! ```
//!
//! The first line has a fixed length: format, state, and hexadecimal digits for 16 bytes of token, one
//! of scheme, 32 of digest, and 6 of milliseconds for which a claim is kept after its lease. A
//! format that is not known is never overwritten.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use redis::{RedisWrite, ToRedisArgs};
use serde::{Deserialize, Serialize};

use crate::{
    error::StoreError,
    fingerprint::Fingerprint,
    record::{Record, RecordBody, Token},
    store::{Claim, hex},
};

/// The length of the first line, its line feed included.
pub(super) const HEAD: usize = 120;
/// How much of the first line says who holds what.
pub(super) const HOLDER: usize = 38;

const FORMAT: &[u8] = b"IDP";
const VERSION: u8 = b'1';
const IN_PROGRESS: u8 = b'P';
const COMPLETED: u8 = b'C';
/// What six bytes can hold: 8,900 years.
const LONGEST_KEPT: u64 = (1 << 48) - 1;

/// What stands at a key.
pub(super) enum Stands {
    Claim {
        head: Bytes,
        token: Token,
        fingerprint: Fingerprint,
        kept: Duration,
    },
    Record(Record),
}

fn head(state: u8, token: Token, fingerprint: Fingerprint, kept: Duration) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(FORMAT);
    head.extend_from_slice(&[VERSION, state, b' ']);
    hex::push(&mut head, token.as_bytes());
    head.push(b' ');
    hex::push(&mut head, &[fingerprint.scheme()]);
    head.push(b':');
    hex::push(&mut head, fingerprint.digest());
    head.push(b' ');
    let kept = u64::try_from(kept.as_nanos().div_ceil(1_000_000)).unwrap_or(LONGEST_KEPT);
    let [_, _, kept @ ..] = kept.min(LONGEST_KEPT).to_be_bytes();
    hex::push(&mut head, &kept);
    head.push(b'\n');
    head
}

/// A claim as it is stored.
pub(super) fn claim(claim: &Claim) -> Vec<u8> {
    head(IN_PROGRESS, claim.token, claim.fingerprint, claim.kept)
}

/// Whether a value that begins so is a claim.
pub(super) fn is_claim(head: &[u8]) -> bool {
    let rest = head.strip_prefix(FORMAT);
    rest.is_some_and(|rest| rest.starts_with(&[VERSION, IN_PROGRESS]))
}

/// The token in digits.
pub(super) fn token(token: Token) -> Vec<u8> {
    let mut digits = Vec::with_capacity(32);
    hex::push(&mut digits, token.as_bytes());
    digits
}

/// The second line of a record.
#[derive(Serialize, Deserialize)]
struct Meta<'a> {
    status: u16,
    #[serde(borrow)]
    headers: Vec<(&'a str, Text<'a>)>,
    /// Which headers have a value that is not UTF-8: each of its bytes is written as a character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    latin1: Vec<usize>,
    /// Whether there is no body to send again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unreplayable: bool,
}

/// Text that is borrowed where it has no escapes.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// A record as it is stored: written into the command without a copy of its own.
pub(super) struct Stored<'a> {
    head: Vec<u8>,
    meta: Vec<u8>,
    body: &'a [u8],
}

impl<'a> Stored<'a> {
    pub(super) fn new(token: Token, record: &'a Record) -> Result<Self, StoreError> {
        let mut latin1 = Vec::new();
        let headers = record
            .headers
            .iter()
            .enumerate()
            .map(|(at, (name, value))| {
                let text = if let Ok(text) = str::from_utf8(value.as_bytes()) {
                    text.into()
                } else {
                    latin1.push(at);
                    let bytes = value.as_bytes().iter();
                    bytes.copied().map(char::from).collect::<String>().into()
                };
                (name.as_str(), Text(text))
            });
        let headers = headers.collect();
        let (body, unreplayable): (&[u8], _) = match &record.body {
            RecordBody::Stored(body) => (body, false),
            RecordBody::Unreplayable => (&[], true),
        };
        let meta = Meta {
            status: record.status.as_u16(),
            headers,
            latin1,
            unreplayable,
        };
        let meta = serde_json::to_vec(&meta).map_err(|error| {
            StoreError::unavailable("a record cannot be written as JSON").because(error)
        })?;
        Ok(Self {
            head: head(COMPLETED, token, record.fingerprint, Duration::ZERO),
            meta,
            body,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.meta.len() + 1 + self.body.len()
    }
}

impl ToRedisArgs for Stored<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        use std::io::Write as _;
        let mut out = out.writer_for_next_arg();
        for part in [&*self.head, &*self.meta, b"\n", self.body] {
            // Memory takes it all.
            out.write_all(part).ok();
        }
    }
}

/// What a value is; an error that names the key where it is none of ours.
pub(super) fn read(key: &str, value: Vec<u8>) -> Result<Stands, StoreError> {
    let value = Bytes::from(value);
    let unreadable = || foreign(key, &value);
    let head = value.get(..HEAD).ok_or_else(unreadable)?;
    let head = parse(head).ok_or_else(unreadable)?;
    if head.state == IN_PROGRESS {
        if value.len() != HEAD {
            return Err(unreadable());
        }
        return Ok(Stands::Claim {
            token: head.token,
            fingerprint: head.fingerprint,
            kept: head.kept,
            head: value,
        });
    }
    record(head.fingerprint, &value)
        .map(Stands::Record)
        .ok_or_else(unreadable)
}

struct Head {
    state: u8,
    token: Token,
    fingerprint: Fingerprint,
    kept: Duration,
}

fn parse(head: &[u8]) -> Option<Head> {
    let rest = head.strip_prefix(FORMAT)?.strip_prefix(&[VERSION])?;
    let (&state, rest) = rest.split_first()?;
    if state != IN_PROGRESS && state != COMPLETED {
        return None;
    }
    let (token, rest) = rest.strip_prefix(b" ")?.split_at_checked(32)?;
    let (scheme, rest) = rest.strip_prefix(b" ")?.split_at_checked(2)?;
    let (digest, rest) = rest.strip_prefix(b":")?.split_at_checked(64)?;
    let (kept, rest) = rest.strip_prefix(b" ")?.split_at_checked(12)?;
    let [scheme] = hex::read(scheme)?;
    let kept: [u8; 6] = hex::read(kept)?;
    let kept = kept
        .iter()
        .fold(0, |kept, byte| kept << 8 | u64::from(*byte));
    (rest == b"\n").then_some(Head {
        state,
        token: Token::from_bytes(hex::read(token)?),
        fingerprint: Fingerprint::from_parts(scheme, hex::read(digest)?),
        kept: Duration::from_millis(kept),
    })
}

fn record(fingerprint: Fingerprint, value: &Bytes) -> Option<Record> {
    let rest = value.get(HEAD..)?;
    let end = memchr::memchr(b'\n', rest)?;
    let meta: Meta<'_> = serde_json::from_slice(rest.get(..end)?).ok()?;
    let headers = meta
        .headers
        .iter()
        .enumerate()
        .map(|(at, (name, Text(text)))| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = if meta.latin1.contains(&at) {
                let bytes: Option<Vec<u8>> =
                    text.chars().map(|char| u8::try_from(char).ok()).collect();
                HeaderValue::from_bytes(&bytes?)
            } else {
                HeaderValue::from_str(text).or_else(|_| HeaderValue::from_bytes(text.as_bytes()))
            };
            Some((name, value.ok()?))
        });
    let headers: Option<Vec<_>> = headers.collect();
    let body = if meta.unreplayable {
        RecordBody::Unreplayable
    } else {
        RecordBody::Stored(value.slice(HEAD + end + 1..))
    };
    let status = StatusCode::from_u16(meta.status).ok()?;
    Some(Record::new(fingerprint, status, headers?, body))
}

/// What stands there was not written by this version.
pub(super) fn foreign(key: &str, value: &[u8]) -> StoreError {
    let why = match value.strip_prefix(FORMAT) {
        Some([version, ..]) if *version != VERSION => {
            "has a format of another version: let all replicas run the same release"
        }
        Some(_) => "is damaged: delete it once nobody needs its answer any more",
        None => "is not of this library: give each service a namespace of its own",
    };
    StoreError::unreadable(format!("the value at {key} in Redis {why}"))
}
