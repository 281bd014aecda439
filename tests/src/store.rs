//! Commands to a store that answers at once, and what they are made of.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use idempotent_runtime::{
    StorageKey,
    store::{
        Claim, ClaimOutcome, CompleteOutcome, Fingerprint, Record, RecordBody, Step, Store,
        StoreError, Token,
    },
};

/// A retention that no test waits for.
pub const HOUR: Duration = Duration::from_hours(1);

/// The `n`th key, spread as digests are.
#[must_use]
pub fn key(n: u64) -> StorageKey {
    let mut bytes = [0; 32];
    for (at, part) in bytes.chunks_exact_mut(8).enumerate() {
        let part_of = n.wrapping_mul(4).wrapping_add(at as u64).wrapping_add(1);
        // splitmix64
        let mut z = part_of.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    StorageKey::from_bytes(bytes)
}

/// The request of all claims and records here.
#[must_use]
pub fn fingerprint() -> Fingerprint {
    Fingerprint::from_parts(1, [7; 32])
}

/// A claim of the request by this token.
#[must_use]
pub fn claim(token: Token) -> Claim {
    Claim::new(token, fingerprint(), Duration::from_secs(30))
}

/// A record with a body of so many bytes.
#[must_use]
pub fn record(bytes: usize) -> Arc<Record> {
    let body = RecordBody::Stored(Bytes::from(vec![b'x'; bytes]));
    Arc::new(Record::new(fingerprint(), StatusCode::CREATED, [], body))
}

/// The answer of a store that has it at once.
///
/// # Panics
///
/// If the store has not, or failed.
#[expect(clippy::panic, reason = "this is an assertion")]
pub fn now<T>(step: Step<Result<T, StoreError>>) -> T {
    match step {
        Step::Now(Ok(answer)) => answer,
        Step::Now(Err(error)) => panic!("{error}"),
        Step::Later(_) => panic!("the store awaits"),
    }
}

/// Claims and completes a key.
///
/// # Panics
///
/// If the key is not free.
pub fn finish(store: &impl Store, key: &StorageKey, bytes: usize, retention: Duration) {
    let token = Token::unique();
    assert_eq!(now(store.claim(key, claim(token))), ClaimOutcome::Claimed);
    let completed = now(store.complete(key, token, record(bytes), retention));
    assert_eq!(completed, CompleteOutcome::Stored);
}

/// The record at a key, if one stands; claims nothing.
#[must_use]
pub fn stands(store: &impl Store, key: &StorageKey) -> Option<Arc<Record>> {
    let token = Token::unique();
    match now(store.claim(key, claim(token))) {
        ClaimOutcome::Completed(record) => Some(record),
        ClaimOutcome::InProgress { .. } | ClaimOutcome::Lapsed { .. } => None,
        ClaimOutcome::Claimed => {
            now(store.release(key, token));
            None
        }
    }
}
