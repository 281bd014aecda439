//! The embedded store at its bound: what goes, what stays out, and what always stays.

use std::time::Duration;

use idempotent_runtime::{
    MemoryStore,
    store::{
        ClaimOutcome, CompleteOutcome, RecordBody, ReleaseOutcome, RenewOutcome, Step, Store,
        StoreErrorKind, Token, WhenFull,
    },
};
use idempotent_tests::store::{HOUR, claim, finish, key, now, record, stands};
use tokio::time::advance;

const MIB: usize = 1024 * 1024;

#[tokio::test(start_paused = true)]
async fn the_bound_holds_and_the_oldest_records_go_first() {
    let store = MemoryStore::new().max_bytes(MIB);
    for n in 0..10_000 {
        finish(&store, &key(n), 200, HOUR);
        assert!(store.stored_bytes() <= MIB, "{n}: {}", store.stored_bytes());
        advance(Duration::from_millis(1)).await;
    }
    let left = u64::try_from(store.len()).unwrap();
    assert!((1500..3000).contains(&left), "{left}");
    for n in (0..10_000).rev() {
        let stands = stands(&store, &key(n)).is_some();
        assert_eq!(stands, n >= 10_000 - left, "record {n} of {left} left");
    }
}

#[tokio::test(start_paused = true)]
async fn the_age_of_records_decides_and_not_their_retention() {
    let store = MemoryStore::new().max_bytes(MIB);
    for n in 0..200 {
        finish(&store, &key(n), 1000, HOUR * 24);
        advance(Duration::from_millis(1)).await;
    }
    for n in 200..1000 {
        finish(&store, &key(n), 1000, HOUR + Duration::from_secs(n % 5));
        advance(Duration::from_millis(1)).await;
    }
    let left = u64::try_from(store.len()).unwrap();
    assert!((500..800).contains(&left), "{left}");
    for n in (0..1000).rev() {
        let stands = stands(&store, &key(n)).is_some();
        assert_eq!(stands, n >= 1000 - left, "record {n} of {left} left");
    }
}

#[tokio::test(start_paused = true)]
async fn large_records_push_out_as_many_small_ones_as_they_need() {
    let store = MemoryStore::new().max_bytes(MIB);
    for n in 0..1500 {
        finish(&store, &key(n), 200, HOUR);
    }
    for n in 1500..1550 {
        advance(Duration::from_millis(1)).await;
        finish(&store, &key(n), 200 * 1024, HOUR);
        assert!(store.stored_bytes() <= MIB, "{n}: {}", store.stored_bytes());
        assert!(stands(&store, &key(n)).is_some(), "{n}");
    }
}

#[tokio::test]
async fn eviction_never_drops_a_claim() {
    let store = MemoryStore::new().max_bytes(MIB);
    let claims: Vec<_> = (0..500).map(|n| (key(n), Token::unique())).collect();
    for (key, token) in &claims {
        assert_eq!(now(store.claim(key, claim(*token))), ClaimOutcome::Claimed);
    }
    for n in 1000..8000 {
        finish(&store, &key(n), 400, HOUR);
    }
    assert_eq!(store.in_progress(), claims.len());
    for (key, token) in &claims {
        let found = now(store.claim(key, claim(Token::unique())));
        assert!(
            matches!(found, ClaimOutcome::InProgress { .. }),
            "{found:?}"
        );
        assert_eq!(now(store.renew(key, claim(*token))), RenewOutcome::Renewed);
        let stored = now(store.complete(key, *token, record(10), HOUR));
        assert_eq!(stored, CompleteOutcome::Stored);
    }
    assert_eq!(store.in_progress(), 0);
}

/// Nothing can be dropped for them, and none of them may be.
#[tokio::test]
async fn claims_stand_beyond_the_bound() {
    let store = MemoryStore::new().max_bytes(1000);
    let claims: Vec<_> = (0..5000).map(|n| (key(n), Token::unique())).collect();
    for (key, token) in &claims {
        assert_eq!(now(store.claim(key, claim(*token))), ClaimOutcome::Claimed);
    }
    assert!(store.stored_bytes() > 5000 * 96, "{}", store.stored_bytes());
    for (key, token) in &claims {
        assert_eq!(now(store.release(key, *token)), ReleaseOutcome::Released);
    }
    assert!(store.is_empty());
}

#[tokio::test]
async fn claims_are_charged_and_give_back_what_they_took() {
    let store = MemoryStore::new();
    for n in 0..200_000 {
        assert_eq!(
            now(store.claim(&key(n), claim(Token::from_bytes([1; 16])))),
            ClaimOutcome::Claimed
        );
    }
    assert_eq!(store.in_progress(), 200_000);
    assert!(
        store.stored_bytes() > 200_000 * 97,
        "{}",
        store.stored_bytes()
    );
    for n in 0..200_000 {
        now(store.release(&key(n), Token::from_bytes([1; 16])));
    }
    assert!(store.is_empty());
    // what each of 256 stripes keeps for the next claims
    assert!(
        store.stored_bytes() < 256 * 8 * 1024,
        "{}",
        store.stored_bytes()
    );
}

#[tokio::test]
async fn a_record_that_takes_most_of_the_store_is_kept_without_its_response() {
    let store = MemoryStore::new().max_bytes(MIB);
    finish(&store, &key(1), 100, HOUR);
    finish(&store, &key(2), MIB * 3 / 4, HOUR);
    assert_eq!(
        stands(&store, &key(2)).unwrap().body,
        RecordBody::Unreplayable
    );
    assert!(
        stands(&store, &key(1)).is_some(),
        "nothing was evicted for it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_takes_no_new_claims_and_forgets_nothing() {
    let store = MemoryStore::new()
        .max_bytes(MIB)
        .when_full(WhenFull::Refuse);
    let accepted: Vec<_> = (0..100).map(|n| (key(n), Token::unique())).collect();
    for (key, token) in &accepted {
        now(store.claim(key, claim(*token)));
    }
    let mut n = 1000;
    let error = loop {
        let token = Token::unique();
        match store.claim(&key(n), claim(token)) {
            Step::Now(Ok(ClaimOutcome::Claimed)) => {}
            Step::Now(Err(error)) => break error,
            other @ (Step::Now(_) | Step::Later(_)) => panic!("{other:?}"),
        }
        now(store.complete(&key(n), token, record(400), HOUR));
        n += 1;
    };
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert!(error.to_string().contains("`max_bytes`"), "{error}");
    assert!(n > 2000, "{n}");
    assert_eq!(store.in_progress(), accepted.len());
    assert_eq!(
        store.len(),
        accepted.len() + usize::try_from(n - 1000).unwrap()
    );
    assert!((1000..n).all(|n| stands(&store, &key(n)).is_some()));

    // what was accepted goes on: own claims, renewals, completions
    for (key, token) in &accepted {
        assert_eq!(now(store.claim(key, claim(*token))), ClaimOutcome::Claimed);
        assert_eq!(now(store.renew(key, claim(*token))), RenewOutcome::Renewed);
        let stored = now(store.complete(key, *token, record(4000), HOUR));
        assert_eq!(stored, CompleteOutcome::Stored);
    }
    let bodies = accepted.iter().map(|(key, _)| stands(&store, key).unwrap());
    let (full, shrunk): (Vec<_>, Vec<_>) =
        bodies.partition(|record| record.body != RecordBody::Unreplayable);
    assert!(full.len() > 10, "{}", full.len());
    assert!(shrunk.len() > 10, "{}", shrunk.len());
    assert!(
        store.stored_bytes() < MIB * 5 / 4,
        "{}",
        store.stored_bytes()
    );

    // once records have expired there is room, also in a stripe that nobody has swept
    advance(HOUR).await;
    finish(&store, &key(n), 400, HOUR);
}
