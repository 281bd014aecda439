//! One holder at a time, also while others are cancelled.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::lock::{DistributedLock, InProcessLock, StripedLock};
use tokio::{
    task::{self, JoinSet},
    time::{Instant, sleep, timeout},
};

const TTL: Duration = Duration::from_mins(10);
const KEYS: [&str; 3] = ["a", "b", "c"];

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    /// One below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// How many are in the section of each key.
type Sections = Arc<[AtomicUsize; 3]>;

/// One turn in the section, if the lock is given; cancelled anywhere after `patience` polls.
async fn turn(
    lock: &impl DistributedLock,
    key: usize,
    wait: Duration,
    sections: &Sections,
) -> bool {
    let taken = lock.try_acquire(KEYS[key], TTL, wait).await;
    let Some(guard) = taken.expect("a lock in memory never faults") else {
        return false;
    };
    let inside = Inside::enter(sections, key);
    task::yield_now().await;
    drop(inside);
    if key == 0 {
        drop(guard);
    } else {
        assert!(guard.release().await.expect("in memory"), "held to the end");
    }
    true
}

struct Inside<'a>(&'a AtomicUsize);

impl<'a> Inside<'a> {
    fn enter(sections: &'a Sections, key: usize) -> Self {
        let section = &sections[key];
        let others = section.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two holders of {}", KEYS[key]);
        Self(section)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 64 tasks, each so many rounds over three keys; a third of them is cancelled. How many turns
/// were taken.
async fn storm(lock: impl DistributedLock + Clone, rounds: usize) -> usize {
    let sections = Sections::default();
    let mut tasks = JoinSet::new();
    for task in 1..=64_u64 {
        let (lock, sections) = (lock.clone(), Arc::clone(&sections));
        tasks.spawn(async move {
            let mut random = Random(task.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut turns = 0;
            for _ in 0..rounds {
                let key = usize::try_from(random.below(3)).expect("small");
                let wait = [Duration::ZERO, Duration::from_millis(3), TTL];
                let wait = wait[usize::try_from(random.below(3)).expect("small")];
                let one = turn(&lock, key, wait, &sections);
                if random.below(3) == 0 {
                    let patience = Duration::from_micros(random.below(300));
                    turns += usize::from(timeout(patience, one).await.unwrap_or(false));
                } else {
                    turns += usize::from(one.await);
                }
            }
            turns
        });
    }
    let turns = timeout(Duration::from_mins(1), tasks.join_all()).await;
    turns.expect("it ends").into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b072_in_process_under_load_and_cancellation() {
    let lock = InProcessLock::new();
    let turns = storm(lock.clone(), 2000).await;
    assert!(turns > 10_000, "only {turns} turns");
    assert!(lock.is_empty(), "{} keys are left", lock.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b072_striped_under_load_and_cancellation() {
    let lock = StripedLock::new();
    let turns = storm(lock.clone(), 2000).await;
    assert!(turns > 10_000, "only {turns} turns");
    for key in KEYS {
        let taken = lock.try_acquire(key, TTL, Duration::ZERO).await;
        assert!(taken.expect("in memory").is_some(), "{key} is left");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_served_in_the_order_of_arrival() {
    let lock = InProcessLock::new();
    let first = lock.try_acquire("a", TTL, Duration::ZERO).await;
    let served = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for place in 0..20 {
        let (lock, served) = (lock.clone(), Arc::clone(&served));
        tasks.spawn(async move {
            let guard = lock.try_acquire("a", TTL, TTL).await;
            assert_eq!(served.fetch_add(1, Ordering::SeqCst), place);
            sleep(Duration::from_millis(5)).await;
            drop(guard);
        });
        task::yield_now().await;
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(served.load(Ordering::SeqCst), 0);
    // One that only tries does not overtake those who wait.
    drop(first);
    let overtakes = lock.try_acquire("a", TTL, Duration::ZERO).await;
    assert!(overtakes.expect("in memory").is_none());
    tasks.join_all().await;
    assert_eq!(served.load(Ordering::SeqCst), 20);
    assert!(lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_lock_goes_to_whoever_waits() {
    let lock = InProcessLock::new();
    let began = Instant::now();
    let ttl = Duration::from_secs(2);
    let lapses = lock.try_acquire("a", ttl, Duration::ZERO).await;
    let mut tasks = JoinSet::new();
    for place in 1..=3 {
        let lock = lock.clone();
        tasks.spawn(async move {
            // Each lapses too, and the next one learns of it.
            let guard = lock.try_acquire("a", ttl, TTL).await;
            assert_eq!(began.elapsed().as_secs(), 2 * place);
            sleep(Duration::from_secs(30)).await;
            assert!(
                !guard
                    .expect("in memory")
                    .expect("taken")
                    .release()
                    .await
                    .expect("in memory")
            );
        });
        task::yield_now().await;
    }
    tasks.join_all().await;
    drop(lapses);
    assert!(lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_passes_on_what_it_was_handed() {
    let lock = InProcessLock::new();
    let first = lock.try_acquire("a", TTL, Duration::ZERO).await;
    let mut leaves = Box::pin(lock.try_acquire("a", TTL, TTL));
    let mut stays = Box::pin(lock.try_acquire("a", TTL, TTL));
    for waiter in [&mut leaves, &mut stays] {
        let waited = timeout(Duration::from_millis(1), waiter).await;
        assert!(waited.is_err());
    }
    // Handed over, and dropped before it is polled again.
    drop(first);
    drop(leaves);
    let taken = timeout(Duration::from_millis(1), stays).await;
    drop(taken.expect("at once").expect("in memory").expect("taken"));
    assert!(lock.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_it_is_over() {
    let lock = InProcessLock::new();
    let held = lock.try_acquire("a", TTL, Duration::ZERO).await;
    for wait in [
        Duration::ZERO,
        Duration::from_millis(1),
        Duration::from_secs(5),
    ] {
        let began = Instant::now();
        let taken = lock.try_acquire("a", TTL, wait).await;
        assert!(taken.expect("in memory").is_none());
        assert_eq!(began.elapsed().as_millis(), wait.as_millis());
    }
    drop(held);
    assert!(lock.is_empty());
}
