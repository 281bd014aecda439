//! A cache and a lock as a store.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    lock::{DistributedLock, InProcessLock, StripedLock},
    store::{
        Cache, Claim, ClaimOutcome, CompleteOutcome, Fingerprint, LockedStore, ReleaseOutcome,
        RenewOutcome, Store, StoreError, StoreErrorKind, Token,
    },
    testing,
};
use idempotent_tests::{
    locked::{MapCache, MoodyLock},
    store::{HOUR, claim, key, record},
};
use tokio::time::{sleep, timeout};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn b011_a_cache_and_a_lock_by_the_same_contract() {
    testing::contract(async || LockedStore::new(MapCache::default()).lock(StripedLock::new()))
        .await;
    testing::contract(async || LockedStore::new(MapCache::default()).lock(InProcessLock::new()))
        .await;
    testing::contract(async || LockedStore::new(MapCache::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_real_time_on_threads() {
    testing::contract(async || LockedStore::new(MapCache::default()).lock(StripedLock::new()))
        .await;
    testing::contract(async || LockedStore::new(MapCache::default()).lock(InProcessLock::new()))
        .await;
}

/// Two replicas on one cache and one lock.
struct Replicas {
    cache: MapCache,
    lock: MoodyLock<InProcessLock>,
    one: LockedStore<MapCache>,
    two: LockedStore<MapCache>,
}

fn replicas() -> Replicas {
    let cache = MapCache::default();
    let lock = MoodyLock::new(InProcessLock::new());
    let replica = || LockedStore::new(cache.clone()).lock(lock.clone());
    Replicas {
        one: replica(),
        two: replica(),
        cache,
        lock,
    }
}

async fn claims(store: &impl Store, token: Token) -> Result<ClaimOutcome, StoreError> {
    store.claim(&key(1), claim(token)).answer().await
}

async fn completes(store: &impl Store, token: Token) -> Result<CompleteOutcome, StoreError> {
    let step = store.complete(&key(1), token, record(10), HOUR);
    step.answer().await
}

async fn releases(store: &impl Store, token: Token) -> Result<ReleaseOutcome, StoreError> {
    store.release(&key(1), token).answer().await
}

async fn renews(store: &impl Store, token: Token) -> Result<RenewOutcome, StoreError> {
    store.renew(&key(1), claim(token)).answer().await
}

/// Whether the lock of the key is free, whoever asks.
async fn is_free(lock: &impl DistributedLock) -> bool {
    let name = key(1).to_string();
    let taken = lock.try_acquire(&name, LEASE, Duration::ZERO).await;
    taken.expect("well").is_some()
}

#[tokio::test(start_paused = true)]
async fn the_five_steps() {
    let it = replicas();
    let (a, b) = (Token::unique(), Token::unique());
    let claimed = claims(&it.one, a).await.unwrap();
    assert_eq!(claimed, ClaimOutcome::Claimed);
    // Look, lock, look again.
    assert_eq!((it.cache.reads.asked(), it.lock.acquires.asked()), (2, 1));
    assert!(!is_free(&it.lock.lock).await);
    assert!(it.cache.keys().is_empty());

    let found = claims(&it.two, b).await.unwrap();
    let held = ClaimOutcome::InProgress {
        fingerprint: claim(b).fingerprint,
        lease_left: Some(LEASE),
    };
    assert_eq!(found, held);

    let stored = completes(&it.one, a).await.unwrap();
    assert_eq!(stored, CompleteOutcome::Stored);
    assert!(is_free(&it.lock.lock).await);
    assert_eq!(it.cache.keys(), [key(1).to_string()]);
    let found = claims(&it.two, b).await.unwrap();
    assert_eq!(found, ClaimOutcome::Completed(record(10)));
    assert_eq!((it.one.in_progress(), it.two.in_progress()), (0, 0));
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_record_between_the_look_and_the_lock_is_found_by_the_second_look() {
    let it = replicas();
    let a = Token::unique();
    claims(&it.one, a).await.unwrap();
    let mut claiming = Box::pin(claims(&it.two, Token::unique()));
    // The first look is over, and the lock about to be asked.
    while it.lock.acquires.asked() < 2 {
        assert!(timeout(Duration::ZERO, &mut claiming).await.is_err());
    }
    completes(&it.one, a).await.unwrap();
    let found = claiming.await.unwrap();
    assert_eq!(found, ClaimOutcome::Completed(record(10)));
    assert!(is_free(&it.lock.lock).await);
}

#[tokio::test(start_paused = true)]
async fn this_process_knows_its_own_claims() {
    let it = replicas();
    let (a, b) = (Token::unique(), Token::unique());
    claims(&it.one, a).await.unwrap();
    let other = Claim::new(b, Fingerprint::from_parts(1, [9; 32]), LEASE / 2);
    sleep(LEASE / 3).await;
    let found = it.one.claim(&key(1), other).answer().await.unwrap();
    let running = ClaimOutcome::InProgress {
        fingerprint: claim(a).fingerprint,
        lease_left: Some(LEASE - LEASE / 3),
    };
    assert_eq!(found, running, "with the request that runs");

    // Elsewhere it waits, and for no longer than its own lease.
    let found = it.two.claim(&key(1), other).answer().await.unwrap();
    let unknown = ClaimOutcome::InProgress {
        fingerprint: other.fingerprint,
        lease_left: Some(other.lease),
    };
    assert_eq!(found, unknown);

    // Its own token has acquired: an earlier reply was lost.
    assert_eq!(claims(&it.one, a).await.unwrap(), ClaimOutcome::Claimed);
    let watch = it.one.watch(&key(1)).expect("it is its own claim");
    assert!(it.two.watch(&key(1)).is_none(), "it has none");
    let ends = tokio::spawn(watch);
    sleep(Duration::from_secs(1)).await;
    assert!(!ends.is_finished());
    assert_eq!(
        releases(&it.one, a).await.unwrap(),
        ReleaseOutcome::Released
    );
    timeout(Duration::from_millis(1), ends)
        .await
        .expect("woken")
        .unwrap();
    assert!(it.one.watch(&key(1)).is_none());
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_and_put_back_where_nobody_has_it() {
    let it = replicas();
    let a = Token::unique();
    claims(&it.one, a).await.unwrap();
    for _ in 0..10 {
        sleep(LEASE / 3).await;
        assert_eq!(renews(&it.one, a).await.unwrap(), RenewOutcome::Renewed);
    }
    assert!(!is_free(&it.lock.lock).await);
    // Renewals failed for too long.
    sleep(LEASE).await;
    assert_eq!(renews(&it.one, a).await.unwrap(), RenewOutcome::Restored);
    assert!(!is_free(&it.lock.lock).await);

    sleep(LEASE).await;
    let b = Token::unique();
    assert_eq!(claims(&it.two, b).await.unwrap(), ClaimOutcome::Claimed);
    assert_eq!(renews(&it.one, a).await.unwrap(), RenewOutcome::Lost);
    // Its release leaves the other's.
    assert_eq!(releases(&it.one, a).await.unwrap(), ReleaseOutcome::NotHeld);
    assert!(!is_free(&it.lock.lock).await);
    // The first success wins, whoever has the lock.
    assert_eq!(
        completes(&it.one, a).await.unwrap(),
        CompleteOutcome::Stored
    );
    let found = completes(&it.two, b).await.unwrap();
    assert_eq!(found, CompleteOutcome::Completed(record(10)));
    assert!(is_free(&it.lock.lock).await);
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_displaced_claim_of_this_process_is_told() {
    let it = replicas();
    let (a, b) = (Token::unique(), Token::unique());
    claims(&it.one, a).await.unwrap();
    let stored = completes(&it.one, b).await.unwrap();
    assert_eq!(stored, CompleteOutcome::Displaced);
    let found = releases(&it.one, a).await.unwrap();
    assert_eq!(found, ReleaseOutcome::Completed(record(10)));
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_completion_knows_its_own_record() {
    let it = replicas();
    let a = Token::unique();
    claims(&it.one, a).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            completes(&it.one, a).await.unwrap(),
            CompleteOutcome::Stored
        );
    }
    assert_eq!(it.cache.writes.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_written_keeps_the_lock() {
    let it = replicas();
    let a = Token::unique();
    claims(&it.one, a).await.unwrap();
    it.cache.writes.failing();
    let error = completes(&it.one, a).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(!is_free(&it.lock.lock).await, "nobody else may run");
    it.cache.writes.hanging();
    let waited = timeout(Duration::from_secs(1), completes(&it.one, a)).await;
    assert!(waited.is_err());
    assert!(!is_free(&it.lock.lock).await, "nobody else may run");
    it.cache.writes.well();
    assert_eq!(
        completes(&it.one, a).await.unwrap(),
        CompleteOutcome::Stored
    );
    assert!(is_free(&it.lock.lock).await);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_ends_early_leaves_no_lock() {
    let it = replicas();
    let a = Token::unique();
    it.cache.reads.hanging();
    let waited = timeout(Duration::from_secs(1), claims(&it.one, a)).await;
    assert!(waited.is_err());
    assert!(it.lock.lock.is_empty());

    // At the second look, with the lock in hand.
    it.cache.reads.well();
    let mut claiming = Box::pin(claims(&it.one, a));
    while it.lock.acquires.asked() < 1 {
        assert!(timeout(Duration::ZERO, &mut claiming).await.is_err());
    }
    it.cache.reads.hanging();
    let waited = timeout(Duration::from_secs(1), &mut claiming).await;
    assert!(waited.is_err());
    assert!(!is_free(&it.lock.lock).await);
    drop(claiming);
    assert!(is_free(&it.lock.lock).await);
    assert_eq!(it.one.in_progress(), 0);

    it.cache.reads.failing();
    assert!(claims(&it.one, a).await.is_err());
    assert!(it.lock.lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_named() {
    let it = replicas();
    let a = Token::unique();
    let message = |error: StoreError| {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        let source = std::error::Error::source(&error).expect("the reason");
        format!("{error}: {source}")
    };
    it.cache.reads.failing();
    let told = message(claims(&it.one, a).await.unwrap_err());
    assert_eq!(told, "the cache could not be read: made to fail");
    it.cache.reads.well();
    it.lock.acquires.failing();
    let told = message(claims(&it.one, a).await.unwrap_err());
    assert_eq!(told, "the lock could not be taken: made to fail");
    it.lock.acquires.well();
    claims(&it.one, a).await.unwrap();
    it.cache.writes.failing();
    let told = message(completes(&it.one, a).await.unwrap_err());
    assert_eq!(told, "the cache could not be written: made to fail");
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_released_although_the_cache_cannot_be_read() {
    let it = replicas();
    let a = Token::unique();
    claims(&it.one, a).await.unwrap();
    it.cache.reads.failing();
    assert_eq!(
        releases(&it.one, a).await.unwrap(),
        ReleaseOutcome::Released
    );
    assert!(it.lock.lock.is_empty());
    // Whether a record stands is not known now.
    assert!(releases(&it.one, a).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn b025_what_cannot_be_read_is_neither_run_over_nor_overwritten() {
    let name = key(1).to_string();
    let whole = {
        let it = replicas();
        completes(&it.one, Token::unique()).await.unwrap();
        it.cache.stands(&name).expect("a record")
    };
    let cut = whole.slice(..whole.len() - 1);
    for foreign in [&b""[..], b"42", b"IDP2C ", &cut] {
        let it = replicas();
        it.cache.put(&name, foreign.to_vec(), HOUR);
        let a = Token::unique();
        let errors = [
            claims(&it.one, a).await.unwrap_err(),
            completes(&it.one, a).await.unwrap_err(),
            renews(&it.one, a).await.unwrap_err(),
            releases(&it.one, a).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
            assert!(error.to_string().contains(&name), "{error}");
        }
        assert_eq!(it.cache.writes.asked(), 0);
        assert_eq!(it.cache.stands(&name).as_deref(), Some(foreign));
        assert!(it.lock.lock.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_never_reported_is_forgotten_in_the_end() {
    let it = replicas();
    for n in 0..10_000 {
        let claim = Claim::new(Token::unique(), claim(Token::unique()).fingerprint, LEASE);
        it.one.claim(&key(n), claim).answer().await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert!(it.one.in_progress() < 200, "{}", it.one.in_progress());
}

/// A cache that brings its lock.
struct WithLock(MapCache, InProcessLock);

impl Cache for WithLock {
    async fn get(&self, key: &str) -> Result<Option<bytes::Bytes>, StoreError> {
        self.0.get(key).await
    }

    async fn set(
        &self,
        key: &str,
        value: bytes::Bytes,
        expiry: Duration,
    ) -> Result<(), StoreError> {
        self.0.set(key, value, expiry).await
    }

    fn lock(&self) -> Option<Arc<dyn DistributedLock>> {
        Some(Arc::new(self.1.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_the_given_one_or_else_the_caches_own() {
    let (own, given) = (InProcessLock::new(), InProcessLock::new());
    let store = LockedStore::new(WithLock(MapCache::default(), own.clone()));
    claims(&store, Token::unique()).await.unwrap();
    assert_eq!((own.len(), given.len()), (1, 0));

    let own = InProcessLock::new();
    let store = LockedStore::new(WithLock(MapCache::default(), own.clone())).lock(given.clone());
    claims(&store, Token::unique()).await.unwrap();
    assert_eq!((own.len(), given.len()), (0, 1));
}
