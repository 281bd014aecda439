//! Who holds it, for how long, and what frees it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use idempotent_runtime::lock::{DistributedLock as _, RedisLock};
use idempotent_tests::{
    log::Log,
    proxy::Proxy,
    redis::{RedisCluster, RedisServer},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{TTL, attempt, behind, calls, connect, left, millis, taken, until_free};

#[tokio::test]
async fn it_excludes_other_replicas_until_its_release() {
    let server = RedisServer::start();
    let (one, two) = (connect(&server.url()).await, connect(&server.url()).await);
    let held = taken(&one, TTL).await.expect("free");
    let stands = left(&server);
    assert!(stands > 29_000 && stands <= 30_000, "{stands}");
    for lock in [&one, &two] {
        assert!(taken(lock, TTL).await.is_none(), "not reentrant either");
    }
    let elsewhere = two.try_acquire("another key", TTL, Duration::ZERO).await;
    assert!(elsewhere.expect("well").is_some());
    let other = RedisLock::connect(&server.url(), "another").await;
    assert!(taken(&other.expect("a lock"), TTL).await.is_some());
    assert!(held.release().await.expect("well"), "held to the end");
    assert_eq!(left(&server), -2);
    assert!(taken(&two, TTL).await.is_some());
}

#[tokio::test]
async fn b010_no_key_is_ever_without_an_end() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    server.cli(&["CONFIG", "RESETSTAT"]);
    for (ttl, most) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (millis(1500), 1500),
        (Duration::MAX, i64::MAX),
    ] {
        let held = taken(&lock, ttl).await.expect("free");
        let stands = left(&server);
        assert!(stands == -2 || (stands > 0 && stands <= most), "{stands}");
        drop(held);
        until_free(&server, millis(2000)).await;
    }
    // One command sets both.
    assert_eq!(calls(&server, "set"), 4);
    assert_eq!(calls(&server, "expire") + calls(&server, "pexpire"), 0);
}

#[tokio::test]
async fn a_wait_of_zero_is_one_attempt_and_a_longer_one_ends_in_time() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    let held = taken(&lock, TTL).await;
    server.cli(&["CONFIG", "RESETSTAT"]);
    assert!(taken(&lock, TTL).await.is_none());
    assert_eq!(calls(&server, "set"), 1);

    let began = Instant::now();
    let refused = attempt(&lock, TTL, millis(1000)).await;
    assert!(refused.expect("well").is_none());
    let waited = began.elapsed();
    assert!(
        waited >= millis(1000) && waited < millis(1300),
        "{waited:?}"
    );
    // Every 50 ms at most.
    let attempts = calls(&server, "set");
    assert!((20..=60).contains(&attempts), "{attempts} attempts");

    let waits = lock.try_acquire("the key", TTL, millis(5000));
    let (began, waits) = (Instant::now(), tokio::spawn(waits));
    sleep(millis(300)).await;
    drop(held);
    assert!(waits.await.expect("no panic").expect("well").is_some());
    assert!(began.elapsed() < millis(600), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_holder_at_a_time_under_load_and_cancellation() {
    let server = RedisServer::start();
    let mut locks = Vec::new();
    for _ in 0..3 {
        locks.push(connect(&server.url()).await);
    }
    let sections: Arc<[AtomicUsize; 3]> = Arc::default();
    let mut tasks = JoinSet::new();
    for task in 0..24_usize {
        let lock = locks[task % 3].clone();
        let sections = Arc::clone(&sections);
        tasks.spawn(async move {
            let mut turns = 0;
            for round in 0..60 {
                let key = (task + round) % 3;
                let wait = millis([0, 20, 10_000][(task * 7 + round) % 3]);
                let one = async {
                    let taken = lock.try_acquire(["a", "b", "c"][key], TTL, wait).await;
                    let Some(guard) = taken.expect("well") else {
                        return 0;
                    };
                    let inside = Inside::enter(&sections[key]);
                    tokio::task::yield_now().await;
                    drop(inside);
                    if round % 2 == 0 {
                        assert!(guard.release().await.expect("well"), "held to the end");
                    }
                    1
                };
                if (task * 5 + round) % 3 == 0 {
                    let patience = Duration::from_micros(((task * 37 + round * 91) % 2000) as u64);
                    turns += timeout(patience, one).await.unwrap_or(0);
                } else {
                    turns += one.await;
                }
            }
            turns
        });
    }
    let turns = timeout(Duration::from_mins(1), tasks.join_all()).await;
    let turns: usize = turns.expect("it ends").into_iter().sum();
    assert!(turns > 300, "only {turns} turns");
    let began = Instant::now();
    while server.cli(&["DBSIZE"]) != "0" {
        let keys = server.cli(&["KEYS", "*"]);
        assert!(began.elapsed() < millis(3000), "left behind: {keys}");
        sleep(millis(20)).await;
    }
}

struct Inside<'a>(&'a AtomicUsize);

impl<'a> Inside<'a> {
    fn enter(section: &'a AtomicUsize) -> Self {
        assert_eq!(section.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        Self(section)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn b008_a_lapsed_guard_leaves_the_next_owners_lock_and_says_so() {
    let (log, _logging) = Log::begin();
    let server = RedisServer::start();
    let (one, two) = (connect(&server.url()).await, connect(&server.url()).await);
    for dropped in [false, true] {
        let a = taken(&one, millis(100)).await.expect("free");
        let b = attempt(&two, TTL, millis(2000)).await.expect("well");
        let b = b.expect("lapsed");
        if dropped {
            drop(a);
        } else {
            assert!(!a.renew(TTL).await.expect("well"), "another's");
            assert!(!a.release().await.expect("well"));
        }
        sleep(millis(100)).await;
        assert!(left(&server) > 20_000, "B holds it");
        assert!(b.release().await.expect("well"), "held to the end");
    }
    let lines = log.with("lapsed");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("renew it"), "{}", lines[0]);
}

#[tokio::test]
async fn a_renewal_counts_from_when_it_is_made() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    let held = taken(&lock, millis(300)).await.expect("free");
    for _ in 0..4 {
        sleep(millis(150)).await;
        assert!(held.renew(millis(300)).await.expect("well"));
    }
    assert!(left(&server) > 0);
    sleep(millis(350)).await;
    assert!(!held.renew(TTL).await.expect("well"), "lapsed");
    assert_eq!(left(&server), -2, "not taken again");
}

#[tokio::test]
async fn dropping_it_releases() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    drop(taken(&lock, TTL).await.expect("free"));
    until_free(&server, millis(1000)).await;
    drop(taken(&lock, TTL).await.expect("free").release());
    until_free(&server, millis(1000)).await;
    // Given up on the way.
    let release = taken(&lock, TTL).await.expect("free").release();
    assert!(release.now_or_never().is_none());
    until_free(&server, millis(1000)).await;
    // From a thread without a runtime.
    let held = taken(&lock, TTL).await;
    std::thread::spawn(move || drop(held))
        .join()
        .expect("no panic");
    until_free(&server, millis(1000)).await;
}

#[tokio::test]
async fn a_cancelled_attempt_leaves_nothing_locked() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let lock = behind(&proxy).await;
    drop(taken(&lock, TTL).await);
    until_free(&server, millis(1000)).await;
    for delayed in [0, 20] {
        proxy.delay(millis(delayed));
        for patience in 0..30 {
            let patience = Duration::from_micros(patience * 100);
            let waited = timeout(patience, attempt(&lock, TTL, Duration::ZERO)).await;
            drop(waited);
        }
        sleep(millis(100)).await;
        until_free(&server, millis(1000)).await;
    }
    proxy.pass();
    assert!(taken(&lock, TTL).await.is_some());
}

#[tokio::test]
async fn a_malformed_namespace_or_url_is_refused() {
    let server = RedisServer::start();
    for (url, namespace) in [
        (&*server.url(), ""),
        (&*server.url(), "a b"),
        ("not a url", "tests"),
    ] {
        let refused = RedisLock::connect(url, namespace).await;
        assert!(refused.is_err(), "{url} {namespace}");
    }
}

#[tokio::test]
async fn a_user_needs_the_rights_that_its_page_lists_and_no_more() {
    let server = RedisServer::start();
    let rights = "on >secret ~tests:lock:* -@all +set +get +del +pexpire +evalsha +eval +ping +role +info +client|info +client|kill";
    let mut words = vec!["ACL", "SETUSER", "app"];
    words.extend(rights.split(' '));
    assert_eq!(server.cli(&words), "OK");
    let lock = connect(&format!("redis://app:secret@{}", server.address())).await;
    let held = taken(&lock, TTL).await.expect("free");
    assert!(taken(&lock, TTL).await.is_none());
    assert!(held.renew(TTL).await.expect("well"));
    assert!(held.release().await.expect("well"));
    lock.probe().answer().await.expect("well");
    assert!(
        RedisLock::connect(&format!("redis://app:wrong@{}", server.address()), "tests")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn on_a_cluster() {
    let cluster = RedisCluster::start();
    let lock = RedisLock::connect_cluster(cluster.urls(), "tests").await;
    let lock = lock.expect("a lock");
    let mut held = HashMap::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        let guard = lock.try_acquire(key, TTL, Duration::ZERO).await;
        held.insert(key, guard.expect("well").expect("free"));
        let again = lock.try_acquire(key, TTL, Duration::ZERO).await;
        assert!(again.expect("well").is_none(), "{key}");
    }
    for (key, guard) in held {
        assert!(guard.renew(TTL).await.expect("well"), "{key}");
        assert!(guard.release().await.expect("well"), "{key}");
        let again = lock.try_acquire(key, TTL, Duration::ZERO).await;
        assert!(again.expect("well").is_some(), "{key}");
    }
}

#[tokio::test]
async fn its_scripts_are_sent_once_and_known_by_their_digest_then() {
    let mut server = RedisServer::start();
    let lock = connect(&server.url()).await;
    for round in 1..=3 {
        let held = taken(&lock, TTL).await.expect("free");
        assert!(held.renew(TTL).await.expect("well"));
        assert!(held.release().await.expect("well"));
        assert_eq!(calls(&server, "eval"), 2);
        assert_eq!(calls(&server, "evalsha"), 2 * round);
    }
    // One that was restarted knows none.
    server.kill();
    server.restart();
    let held = loop {
        if let Ok(held) = attempt(&lock, TTL, Duration::ZERO).await {
            break held.expect("free");
        }
    };
    assert!(held.renew(TTL).await.expect("well"));
    assert!(held.release().await.expect("well"));
    assert_eq!(left(&server), -2);
}

#[test]
fn a_guard_is_released_on_a_runtime_that_lives() {
    let server = RedisServer::start();
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("one")
    };
    let (first, second) = (runtime(), runtime());
    let lock = first.block_on(connect(&server.url()));
    let held = first.block_on(taken(&lock, TTL)).expect("free");
    // With it go the connection and its tasks.
    first.shutdown_background();
    second.block_on(async {
        drop(held);
        until_free(&server, millis(2000)).await;
    });
}
