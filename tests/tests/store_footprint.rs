//! The byte bound is that of the process: alone in its binary, so that nothing else takes memory.

use std::{fs, time::Duration};

use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use idempotent_runtime::{
    MemoryStore,
    store::{Record, RecordBody, Store, Token},
};
use idempotent_tests::store::{HOUR, claim, fingerprint, key, now};

const MIB: usize = 1024 * 1024;

/// The memory that this process has, from the second field of `/proc/self/statm` in pages.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn finish(store: &MemoryStore, n: u64) {
    let token = Token::unique();
    now(store.claim(&key(n), claim(token)));
    let headers = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )];
    let body = RecordBody::Stored(Bytes::from(vec![b'x'; 213]));
    let record = Record::new(fingerprint(), StatusCode::CREATED, headers, body);
    now(store.complete(&key(n), token, record.into(), HOUR));
}

/// One test, since two would measure each other.
#[tokio::test(start_paused = true)]
async fn a_million_keys_stay_within_the_bound() {
    // First without eviction, while memory is fresh: what is charged is what is taken.
    let store = MemoryStore::new();
    let empty = resident();
    for n in 0..100_000 {
        finish(&store, n);
    }
    let (taken, charged) = (resident() - empty, store.stored_bytes());
    assert!(
        taken < charged + charged / 20,
        "{taken} taken, {charged} charged"
    );
    assert!(
        taken > charged - charged / 5,
        "{taken} taken, {charged} charged"
    );
    assert!(taken / 100_000 < 679, "{} bytes a record", taken / 100_000);
    drop(store);

    let bound = 128 * MIB;
    let store = MemoryStore::new().max_bytes(bound);
    for n in 0..1_000_000 {
        finish(&store, n);
        if n % 1000 == 0 {
            assert!(store.stored_bytes() <= bound, "{}", store.stored_bytes());
        }
    }
    let taken = resident() - empty;
    assert!(
        taken < bound + bound / 8,
        "{taken} taken, {} charged",
        store.stored_bytes()
    );
    assert!(store.stored_bytes() > bound * 9 / 10);

    tokio::time::sleep(HOUR + Duration::from_secs(30)).await;
    assert_eq!((store.len(), store.stored_bytes()), (0, 0));
    for n in 0..1_000_000 {
        now(store.claim(&key(n), claim(Token::from_bytes([1; 16]))));
        now(store.release(&key(n), Token::from_bytes([1; 16])));
    }
    let taken = resident() - empty;
    assert!(taken < bound + bound / 8, "{taken} taken after idling");
    assert!(store.stored_bytes() < MIB, "{}", store.stored_bytes());
}
