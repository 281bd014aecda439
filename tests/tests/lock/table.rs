//! The table of a lock in memory holds what is in use, and nothing else.

use std::time::Duration;

use idempotent_runtime::lock::{DistributedLock, InProcessLock};
use tokio::time::timeout;

const TTL: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn b071_it_is_empty_after_200_000_keys() {
    let lock = InProcessLock::new();
    let mut held = Vec::new();
    for n in 0..200_000 {
        let key = format!("key {n}");
        let taken = lock.try_acquire(&key, TTL, Duration::ZERO).await;
        let guard = taken.expect("in memory").expect("free");
        if n % 2 == 0 {
            held.push(guard);
        }
    }
    assert_eq!(lock.len(), 100_000);
    held.clear();
    assert!(lock.is_empty(), "{} keys are left", lock.len());
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_waiting_leaves_nothing() {
    let lock = InProcessLock::new();
    let held = lock.try_acquire("a", TTL * 100, Duration::ZERO).await;
    for _ in 0..1000 {
        let waiting = lock.try_acquire("a", TTL, TTL);
        assert!(timeout(Duration::from_micros(100), waiting).await.is_err());
        drop(lock.try_acquire("b", TTL, TTL));
    }
    assert_eq!(lock.len(), 1);
    drop(held);
    assert!(lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn lapsed_and_forgotten_by_its_guard_it_is_the_next_ones() {
    let lock = InProcessLock::new();
    let lapsed = lock.try_acquire("a", TTL, Duration::ZERO).await;
    tokio::time::sleep(TTL).await;
    let next = lock.try_acquire("a", TTL, Duration::ZERO).await;
    assert_eq!(lock.len(), 1);
    drop(lapsed);
    assert_eq!(lock.len(), 1, "the next owner's");
    drop(next);
    assert!(lock.is_empty());
}
