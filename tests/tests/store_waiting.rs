//! Claims, watches and releases of many tasks over few keys, some of them cancelled at any point.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    MemoryStore, StorageKey,
    store::{ClaimOutcome, CompleteOutcome, ReleaseOutcome, Store, Token},
};
use idempotent_tests::store::{HOUR, claim, key, now, record};
use tokio::{task, time};

const KEYS: u64 = 3;
const TASKS: u64 = 64;
const ROUNDS: u64 = 2000;

/// Releases when it is dropped, as a run does that is cancelled.
struct Held<'a> {
    store: &'a MemoryStore,
    inside: &'a AtomicUsize,
    key: StorageKey,
    token: Token,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
        let released = now(self.store.release(&self.key, self.token));
        assert_eq!(released, ReleaseOutcome::Released);
    }
}

/// Gets the key, woken by nothing but the store, and holds it for a moment.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
async fn round(store: &MemoryStore, key: StorageKey, inside: &AtomicUsize) {
    let token = Token::unique();
    loop {
        if now(store.claim(&key, claim(token))) == ClaimOutcome::Claimed {
            break;
        }
        let gone = store.watch(&key).unwrap();
        if now(store.claim(&key, claim(token))) == ClaimOutcome::Claimed {
            break;
        }
        gone.await;
    }
    let alone = inside.fetch_add(1, Ordering::SeqCst) == 0;
    let held = Held {
        store,
        inside,
        key,
        token,
    };
    assert!(alone, "two hold one key");
    task::yield_now().await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b072_no_wake_up_is_lost_and_nothing_is_left() {
    let store = MemoryStore::new();
    let inside: Arc<[AtomicUsize]> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let mut tasks = task::JoinSet::new();
    for task in 0..TASKS {
        let (store, inside) = (store.clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            let mut random = task + 1;
            for _ in 0..ROUNDS {
                // xorshift
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = random % KEYS;
                let mut round = pin!(round(
                    &store,
                    key(at),
                    &inside[usize::try_from(at).unwrap()]
                ));
                if random / 8 % 3 == 0 {
                    for _ in 0..random / 64 % 6 {
                        tokio::select! {
                            biased;
                            () = &mut round => break,
                            () = task::yield_now() => {}
                        }
                    }
                } else {
                    round.await;
                }
            }
        });
    }
    time::timeout(Duration::from_mins(1), tasks.join_all())
        .await
        .unwrap();
    assert_eq!((store.len(), store.in_progress()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn waiters_are_woken_at_once_and_cost_nothing_after() {
    let store = MemoryStore::new();
    let token = Token::unique();
    now(store.claim(&key(1), claim(token)));
    let before = store.stored_bytes();
    let waiters: Vec<_> = (0..1000).map(|_| store.watch(&key(1)).unwrap()).collect();
    assert!(store.stored_bytes() > before);
    let stored = now(store.complete(&key(1), token, record(0), HOUR));
    assert_eq!(stored, CompleteOutcome::Stored);
    let start = time::Instant::now();
    for waiter in waiters {
        waiter.await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);

    let other = MemoryStore::new();
    let token = Token::unique();
    now(other.claim(&key(1), claim(token)));
    now(other.complete(&key(1), token, record(0), HOUR));
    assert_eq!(store.stored_bytes(), other.stored_bytes());
}
