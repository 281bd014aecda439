//! The embedded store: bounds, expiry and what waits.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use idempotent_runtime::{
    MemoryStore, StorageKey,
    store::{Claim, ClaimOutcome, CompleteOutcome, Fingerprint, Record, RecordBody, Store, Token},
};

const HOUR: Duration = Duration::from_secs(3600);

fn key(n: u64) -> StorageKey {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[24..].copy_from_slice(&n.to_be_bytes());
    StorageKey::from_bytes(bytes)
}

fn fingerprint() -> Fingerprint {
    Fingerprint::from_parts(1, [7; 32])
}

fn claim(token: Token) -> Claim {
    Claim::new(token, fingerprint(), Duration::from_secs(30))
}

fn record(bytes: usize) -> Arc<Record> {
    let body = RecordBody::Stored(Bytes::from(vec![b'x'; bytes]));
    Arc::new(Record::new(fingerprint(), StatusCode::CREATED, [], body))
}

async fn complete(store: &MemoryStore, key: StorageKey, bytes: usize, retention: Duration) {
    let token = Token::unique();
    let claimed = store.claim(&key, claim(token)).answer().await.unwrap();
    assert_eq!(claimed, ClaimOutcome::Claimed);
    let completed = store.complete(&key, token, record(bytes), retention);
    assert_eq!(completed.answer().await.unwrap(), CompleteOutcome::Stored);
}

#[tokio::test(start_paused = true)]
async fn the_bound_holds_and_the_oldest_records_go_first() {
    let most = 1024 * 1024;
    let store = MemoryStore::new().max_bytes(most);
    for n in 0..10_000 {
        complete(&store, key(n), 200, HOUR).await;
        assert!(
            store.stored_bytes() <= most,
            "{n}: {}",
            store.stored_bytes()
        );
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let left = u64::try_from(store.len()).unwrap();
    assert!(left > 1000, "{left}");
    for n in 0..10_000 {
        let found = store
            .claim(&key(n), claim(Token::unique()))
            .answer()
            .await
            .unwrap();
        let stands = matches!(found, ClaimOutcome::Completed(_));
        if stands != (n >= 10_000 - left) {
            panic!("record {n} of {left} left: {found:?}");
        }
        if !stands {
            break;
        }
    }
}
