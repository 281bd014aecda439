//! What a record of the embedded store weighs, and what a claim costs beside many records.

use std::{hint::black_box, sync::Arc, time::Duration};

use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use cpu_time::ProcessTime;
use idempotent_runtime::{
    MemoryStore, StorageKey,
    store::{Claim, ClaimOutcome, Fingerprint, Record, RecordBody, Step, Store, Token},
};
use sha2::{Digest, Sha256};

const DAY: Duration = Duration::from_hours(24);
const LEASE: Duration = Duration::from_secs(30);
const CLAIMS: u64 = 10_000;
const ROUNDS: usize = 21;

pub(crate) fn report() {
    let few = filled(0, 10_000);
    let before = resident();
    let many = filled(1 << 32, 1_000_000);
    println!("BYTES per_record {}", (resident() - before) / 1_000_000);
    let (mut at_few, mut at_many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        at_few.push(claim_cost(&few, round));
        at_many.push(claim_cost(&many, round));
    }
    println!("NS claim_at_10k {:.0}", super::median(&mut at_few));
    println!("NS claim_at_1m {:.0}", super::median(&mut at_many));
}

/// A store with this many records of 213 bytes and one header.
fn filled(from: u64, records: u64) -> MemoryStore {
    let store = MemoryStore::new().max_bytes(8 << 30);
    for n in from..from + records {
        let token = Token::unique();
        let headers = vec![(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )];
        let body = RecordBody::Stored(Bytes::from(vec![b'x'; 213]));
        let record = Record::new(fingerprint(), StatusCode::CREATED, headers, body);
        drop(store.complete(&key(n), token, Arc::new(record), DAY));
    }
    store
}

/// Nanoseconds a claim of a new key, which is then released.
fn claim_cost(store: &MemoryStore, round: u64) -> f64 {
    let keys: Vec<_> = (0..CLAIMS)
        .map(|n| key((1 << 48) + round * CLAIMS + n))
        .collect();
    let token = Token::unique();
    let start = ProcessTime::now();
    for key in &keys {
        let claimed = store.claim(black_box(key), Claim::new(token, fingerprint(), LEASE));
        assert!(matches!(claimed, Step::Now(Ok(ClaimOutcome::Claimed))));
    }
    let spent = start.elapsed();
    for key in &keys {
        drop(store.release(key, token));
    }
    spent.as_secs_f64() * 1e9 / CLAIMS as f64
}

fn key(n: u64) -> StorageKey {
    StorageKey::from_bytes(Sha256::digest(n.to_be_bytes()).into())
}

fn fingerprint() -> Fingerprint {
    Fingerprint::from_parts(1, [7; 32])
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .expect("a number of pages");
    pages * 4096
}
