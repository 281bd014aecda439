//! A guard is its owner's: what it frees, and what it says when it has lapsed.

use std::time::Duration;

use idempotent_runtime::lock::{DistributedLock, Guard, InProcessLock, StripedLock};
use idempotent_tests::log::Log;
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(1);

async fn taken(lock: &impl DistributedLock, ttl: Duration) -> Option<Guard> {
    let taken = lock.try_acquire("the key", ttl, Duration::ZERO).await;
    taken.expect("a lock in memory never faults")
}

/// Each of the locks in memory.
async fn for_each(test: impl AsyncFn(&dyn Fn() -> Box<dyn DistributedLock>)) {
    test(&|| Box::new(InProcessLock::new())).await;
    test(&|| Box::new(StripedLock::new())).await;
}

struct Any(Box<dyn DistributedLock>);

impl DistributedLock for Any {
    fn try_acquire(
        &self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> idempotent_runtime::lock::BoxFuture<
        Result<Option<Guard>, idempotent_runtime::lock::LockError>,
    > {
        self.0.try_acquire(key, ttl, wait)
    }
}

#[tokio::test(start_paused = true)]
async fn b008_a_lapsed_guard_leaves_the_next_owners_lock() {
    for_each(async |make| {
        for dropped in [false, true] {
            let lock = Any(make());
            let a = taken(&lock, TTL).await.expect("free");
            sleep(TTL + Duration::from_millis(500)).await;
            let b = taken(&lock, TTL).await.expect("lapsed");
            if dropped {
                drop(a);
            } else {
                assert!(!a.release().await.expect("in memory"));
            }
            assert!(taken(&lock, TTL).await.is_none(), "B holds it");
            assert!(b.release().await.expect("in memory"), "held to the end");
            assert!(taken(&lock, TTL).await.is_some());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_guard_says_so_once_and_what_to_do() {
    for dropped in [false, true] {
        let (log, _logging) = Log::begin();
        let lock = InProcessLock::new();
        let in_time = taken(&lock, TTL).await.expect("free");
        assert!(in_time.release().await.expect("in memory"));
        drop(taken(&lock, TTL).await.expect("free"));
        assert_eq!(log.with("lapsed"), [""; 0]);

        // Also where nobody has taken it since.
        let late = taken(&lock, TTL).await.expect("free");
        sleep(TTL).await;
        if dropped {
            drop(late);
        } else {
            assert!(!late.release().await.expect("in memory"));
        }
        let lines = log.with("lapsed");
        assert_eq!(lines.len(), 1, "{lines:?}");
        // Whoever has a `LockedStore` sets a lease.
        for part in [
            "WARN",
            "key=the key",
            "ttl=1s",
            "`ttl`",
            "`lease`",
            "longer",
            "renew",
        ] {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
        assert!(lock.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn it_holds_until_its_ttl_and_no_longer() {
    for_each(async |make| {
        let lock = Any(make());
        let held = taken(&lock, TTL).await;
        sleep(TTL - Duration::from_millis(1)).await;
        assert!(taken(&lock, TTL).await.is_none());
        sleep(Duration::from_millis(1)).await;
        assert!(taken(&lock, TTL).await.is_some());
        drop(held);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_when_it_is_made() {
    for_each(async |make| {
        let lock = Any(make());
        let held = taken(&lock, TTL).await.expect("free");
        for _ in 0..5 {
            sleep(TTL - Duration::from_millis(1)).await;
            assert!(held.renew(TTL).await.expect("in memory"));
        }
        sleep(TTL - Duration::from_millis(1)).await;
        assert!(taken(&lock, TTL).await.is_none());
        sleep(Duration::from_millis(1)).await;
        assert!(!held.renew(TTL).await.expect("in memory"), "lapsed");
        let next = taken(&lock, TTL).await.expect("lapsed");
        assert!(!held.renew(TTL).await.expect("in memory"), "another's");
        assert!(next.release().await.expect("in memory"));
        assert!(
            !held.renew(TTL).await.expect("in memory"),
            "not taken again"
        );
        assert!(taken(&lock, TTL).await.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shorter_renewal_is_noticed_by_whoever_waits() {
    let lock = InProcessLock::new();
    let held = taken(&lock, TTL * 3600).await.expect("free");
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.try_acquire("the key", TTL, TTL * 10).await }
    });
    sleep(TTL).await;
    assert!(held.renew(TTL).await.expect("in memory"));
    let next = waiting.await.expect("no panic").expect("in memory");
    assert!(next.is_some());
}

#[tokio::test(start_paused = true)]
async fn dropping_it_releases() {
    for_each(async |make| {
        let lock = Any(make());
        for _ in 0..3 {
            drop(taken(&lock, TTL * 3600).await.expect("free"));
        }
        // A release that nobody waits for.
        drop(taken(&lock, TTL * 3600).await.expect("free").release());
        assert!(taken(&lock, TTL).await.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn it_is_not_reentrant() {
    for_each(async |make| {
        let lock = Any(make());
        let held = taken(&lock, TTL * 3600).await;
        assert!(held.is_some());
        let again = lock.try_acquire("the key", TTL, TTL).await;
        assert!(again.expect("in memory").is_none());
    })
    .await;
}

#[test]
fn a_guard_can_be_dropped_after_its_runtime() {
    let lock = InProcessLock::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let held = runtime.block_on(taken(&lock, TTL));
    drop(runtime);
    drop(held.expect("free"));
    assert!(lock.is_empty());
}
