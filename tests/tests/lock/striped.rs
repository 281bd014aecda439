//! 256 stripes: keys that share one exclude each other, and nothing worse.

use std::{collections::HashSet, time::Duration};

use idempotent_runtime::lock::{DistributedLock, StripedLock};
use tokio::time::Instant;

const TTL: Duration = Duration::from_mins(1);

async fn is_free(lock: &StripedLock, key: &str) -> bool {
    let taken = lock.try_acquire(key, TTL, Duration::ZERO).await;
    taken.expect("in memory").is_some()
}

/// Keys among the first ten thousand that share the stripe of `key`.
async fn neighbours(lock: &StripedLock, key: &str) -> Vec<String> {
    let held = lock.try_acquire(key, TTL, Duration::ZERO).await;
    let mut found = Vec::new();
    for n in 0..10_000 {
        let other = format!("key {n}");
        if other != key && !is_free(lock, &other).await {
            found.push(other);
        }
    }
    drop(held);
    found
}

#[tokio::test(start_paused = true)]
async fn the_same_key_always_has_the_same_stripe() {
    let lock = StripedLock::new();
    let clone = lock.clone();
    for n in 0..1000 {
        let key = format!("key {n}");
        let held = lock.try_acquire(&key, TTL, Duration::ZERO).await;
        assert!(held.expect("in memory").is_some_and(|_guard| true));
        let held = lock.try_acquire(&key, TTL, Duration::ZERO).await;
        assert!(!is_free(&clone, &key).await, "{key}");
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn all_stripes_are_used() {
    let lock = StripedLock::new();
    let mut held = Vec::new();
    for n in 0..10_000 {
        let key = format!("key {n}");
        let taken = lock.try_acquire(&key, TTL, Duration::ZERO).await;
        held.extend(taken.expect("in memory"));
    }
    assert_eq!(held.len(), 256);
}

#[tokio::test(start_paused = true)]
async fn keys_of_one_stripe_exclude_each_other_until_the_wait_is_over() {
    let lock = StripedLock::new();
    let others = neighbours(&lock, "key 0").await;
    // Forty are expected among ten thousand.
    let other = others.first().expect("some key shares the stripe");

    // One task that holds one and asks for the other: no deadlock, but an answer.
    let held = lock.try_acquire("key 0", TTL, Duration::ZERO).await;
    let began = Instant::now();
    let wait = Duration::from_secs(5);
    let second = lock.try_acquire(other, TTL, wait).await;
    assert!(second.expect("in memory").is_none());
    assert_eq!(began.elapsed(), wait);
    drop(held);
    assert!(is_free(&lock, other).await);
}

#[tokio::test(start_paused = true)]
async fn which_keys_share_a_stripe_differs_from_lock_to_lock() {
    let mut seen = HashSet::new();
    for _ in 0..4 {
        seen.insert(neighbours(&StripedLock::new(), "key 0").await);
    }
    assert!(seen.len() > 1, "{seen:?}");
}
