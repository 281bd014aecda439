//! What a claim and a record look like at their key: as in [`value`](crate::store::value), and a
//! claim is the first line alone.

use std::time::Duration;

use bytes::Bytes;
use redis::{RedisWrite, ToRedisArgs};

use crate::{
    error::StoreError,
    fingerprint::Fingerprint,
    record::{Record, Token},
    store::{
        Claim, hex,
        value::{self, Head, Parts, State},
    },
};

/// How much of the first line says who holds what.
pub(super) const HOLDER: usize = 38;

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

/// A claim as it is stored.
pub(super) fn claim(claim: &Claim) -> Vec<u8> {
    let head = Head {
        state: State::InProgress,
        token: claim.token,
        fingerprint: claim.fingerprint,
        kept: claim.kept,
    };
    head.line(0)
}

/// Whether a value that begins so is a claim.
pub(super) fn is_claim(head: &[u8]) -> bool {
    head.starts_with(State::InProgress.mark())
}

/// The token in digits.
pub(super) fn token(token: Token) -> Vec<u8> {
    let mut digits = Vec::with_capacity(32);
    hex::push(&mut digits, token.as_bytes());
    digits
}

/// A record as it is stored: written into the command without a copy of its own.
pub(super) struct Stored<'a>(Parts<'a>);

impl<'a> Stored<'a> {
    pub(super) fn new(token: Token, record: &'a Record) -> Result<Self, StoreError> {
        Parts::new(token, record, 0).map(Self)
    }

    pub(super) fn len(&self) -> usize {
        self.0.lines.len() + self.0.body.len()
    }
}

impl ToRedisArgs for Stored<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        use std::io::Write as _;
        let mut out = out.writer_for_next_arg();
        for part in [&*self.0.lines, self.0.body] {
            // Memory takes it all.
            out.write_all(part).ok();
        }
    }
}

/// What a value is; an error that names the key where it is none of ours.
pub(super) fn read(key: &str, value: Vec<u8>) -> Result<Stands, StoreError> {
    let value = Bytes::from(value);
    stands(&value).ok_or_else(|| foreign(key, &value))
}

fn stands(value: &Bytes) -> Option<Stands> {
    let (head, rest) = Head::read(value)?;
    match head.state {
        State::InProgress => rest.is_empty().then(|| Stands::Claim {
            head: value.clone(),
            token: head.token,
            fingerprint: head.fingerprint,
            kept: head.kept,
        }),
        State::Completed => value::record(&head, value, rest).map(Stands::Record),
    }
}

/// What stands there was not written by this version.
pub(super) fn foreign(key: &str, value: &[u8]) -> StoreError {
    value::unreadable(format_args!("{key} in Redis"), value)
}
