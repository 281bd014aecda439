//! What is process-local, or cannot be done, is said once a process. Alone in its process, since only one can be first.

use std::time::Duration;

use idempotent_runtime::{
    lock::{DistributedLock, InProcessLock, StripedLock},
    store::{LockedStore, Store, Token},
};
use idempotent_tests::{
    locked::MapCache,
    log::Log,
    store::{claim, key},
};

const TTL: Duration = Duration::from_secs(30);

#[tokio::test]
async fn it_is_said_once_a_process() {
    let log = Log::of_the_process();
    // A lock that was chosen for what it is.
    let striped = StripedLock::new();
    drop(striped.try_acquire("a", TTL, Duration::ZERO).await);
    let given = LockedStore::new(MapCache::default()).lock(striped);
    let claimed = given.claim(&key(1), claim(Token::unique())).answer().await;
    claimed.expect("well");
    assert_eq!(log.with("WARN"), [""; 0]);

    for n in 0..5 {
        let lock = InProcessLock::new();
        for key in ["a", "b"] {
            drop(lock.try_acquire(key, TTL, Duration::ZERO).await);
        }
        let lines = log.with("within this process only");
        assert_eq!(lines.len(), 1, "{n}: {lines:?}");
        assert!(lines[0].contains("`InProcessLock`"), "{}", lines[0]);
        assert!(lines[0].contains("`RedisLock`"), "{}", lines[0]);
    }

    for n in 0..5 {
        let store = LockedStore::new(MapCache::default());
        for n in 0..2 {
            let claimed = store.claim(&key(n), claim(Token::unique())).answer().await;
            claimed.expect("well");
        }
        let lines = log.with("within this process only");
        assert_eq!(lines.len(), 2, "{n}: {lines:?}");
        assert!(lines[1].contains("`LockedStore`"), "{}", lines[1]);
        assert!(lines[1].contains("`RedisLock`"), "{}", lines[1]);
    }
    assert_eq!(log.with("WARN").len(), 2);

    for n in 0..5 {
        let store = LockedStore::new(MapCache::default());
        for n in 0..2 {
            let kept = claim(Token::unique()).kept(TTL);
            store.claim(&key(n), kept).answer().await.expect("well");
        }
        let lines = log.with("on_lost_run");
        assert_eq!(lines.len(), 1, "{n}: {lines:?}");
        for part in ["WARN", "`LockedStore`", "runs again", "`RedisStore`"] {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
    }
    assert_eq!(log.with("WARN").len(), 3);
}
