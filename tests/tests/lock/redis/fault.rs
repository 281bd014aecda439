//! Servers that are gone, hang or are full, networks that lose replies, holders that die.

use std::{
    error::Error as _,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use idempotent_runtime::lock::{DistributedLock as _, LockErrorKind, RedisLock};
use idempotent_tests::{
    log::Log,
    proxy::{Proxy, Then},
    redis::{RedisSentinel, RedisServer},
};
use tokio::time::{Instant, sleep};

use super::{STORED, TTL, attempt, behind, calls, connect, left, millis, taken, until_free};

#[tokio::test]
async fn a_server_that_is_gone_is_a_fault_and_not_a_lock_that_is_held() {
    let mut server = RedisServer::start();
    let lock = connect(&server.url()).await;
    let held = taken(&lock, TTL).await;
    server.kill();
    for wait in [Duration::ZERO, Duration::from_secs(5)] {
        let began = Instant::now();
        let failed = attempt(&lock, TTL, wait).await;
        let error = failed.expect_err("a fault");
        assert_eq!(error.kind(), LockErrorKind::Unavailable);
        assert!(error.source().is_some(), "{error}");
        assert!(began.elapsed() < millis(500), "{:?}", began.elapsed());
    }
    drop(held);
    // Also where it has never been there.
    let (log, _logging) = Log::begin();
    let other = connect(&server.url()).await;
    assert_eq!(log.with("cannot be reached").len(), 1);
    assert!(attempt(&other, TTL, Duration::ZERO).await.is_err());

    server.restart();
    for lock in [&lock, &other] {
        // The first may still share an attempt to connect that began before.
        let held = match attempt(lock, TTL, Duration::ZERO).await {
            Err(_) => taken(lock, TTL).await,
            held => held.expect("well"),
        };
        drop(held.expect("free"));
        until_free(&server, millis(1000)).await;
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_a_fault_within_a_bound() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    drop(taken(&lock, TTL).await);
    until_free(&server, millis(1000)).await;
    server.freeze();
    let began = Instant::now();
    let failed = attempt(&lock, TTL, Duration::from_secs(5)).await;
    let error = failed.expect_err("a fault");
    assert!(error.to_string().contains(STORED), "{error}");
    assert!(began.elapsed() < millis(1500), "{:?}", began.elapsed());
    server.thaw();
    // What it was sent while it was frozen is carried out, and taken back.
    sleep(millis(100)).await;
    until_free(&server, millis(3000)).await;
    assert!(taken(&lock, TTL).await.is_some());
}

#[tokio::test]
async fn a_lost_reply_leaves_nothing_locked() {
    for then in [Then::Close, Then::Hang] {
        let server = RedisServer::start();
        let proxy = Proxy::to(server.address().parse().expect("an address"));
        let lock = behind(&proxy).await;
        proxy.lose_reply_to(b"\r\nSET\r\n", then);
        let began = Instant::now();
        let failed = attempt(&lock, TTL, Duration::from_secs(5)).await;
        assert!(failed.is_err(), "{then:?}");
        assert!(began.elapsed() < millis(1500), "{:?}", began.elapsed());
        assert_eq!(calls(&server, "set"), 1, "it was carried out");
        until_free(&server, millis(4000)).await;
        let next = taken(&lock, TTL).await;
        assert!(next.is_some(), "{then:?}: over a fresh connection");
    }
}

#[tokio::test]
async fn a_lost_reply_to_a_release_is_made_good() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let lock = behind(&proxy).await;
    let held = taken(&lock, TTL).await.expect("free");
    // The connection carries nothing any more, and does not say so.
    proxy.strand();
    assert!(held.release().await.is_err());
    until_free(&server, millis(4000)).await;

    let held = taken(&lock, TTL).await.expect("free");
    proxy.strand();
    drop(held);
    until_free(&server, millis(4000)).await;
}

#[tokio::test]
async fn a_lock_outlives_its_connection() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    let held = taken(&lock, TTL).await.expect("free");
    server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    sleep(millis(50)).await;
    assert!(left(&server) > 0);
    // The first command may find the connection gone; the next one has a fresh one.
    let renewed = match held.renew(TTL).await {
        Err(_) => held.renew(TTL).await,
        renewed => renewed,
    };
    assert!(renewed.expect("well"), "still held");
    assert!(held.release().await.expect("well"));
}

/// Not a test of its own: the process that [`a_killed_holders_lock_is_free_after_its_ttl`] kills.
#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
#[expect(clippy::print_stdout, reason = "how the other process is told")]
async fn holds_a_lock_until_it_is_killed() {
    let url = std::env::var("LOCK_TEST_URL").expect("where to");
    let held = taken(&connect(&url).await, millis(1500)).await;
    println!("\nheld: {}", held.is_some());
    sleep(Duration::from_mins(1)).await;
}

#[tokio::test]
async fn a_killed_holders_lock_is_free_after_its_ttl() {
    let server = RedisServer::start();
    let mut holder = Command::new(std::env::current_exe().expect("this test"))
        .args(["redis::fault::holds_a_lock_until_it_is_killed", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env("LOCK_TEST_URL", server.url())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test, once more");
    let output = BufReader::new(holder.stdout.take().expect("piped"));
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "held: true"), "the holder ended");
    let began = Instant::now();
    holder.kill().expect("it runs");
    holder.wait().expect("it ends");

    let lock = connect(&server.url()).await;
    assert!(taken(&lock, TTL).await.is_none(), "not before");
    let stands = left(&server);
    assert!(stands > 0 && stands <= 1500, "{stands}");
    let next = attempt(&lock, TTL, Duration::from_secs(5)).await;
    assert!(next.expect("well").is_some());
    assert!(began.elapsed() < millis(1700), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_full_server_still_says_that_another_holds_it() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    let held = taken(&lock, TTL).await.expect("free");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(taken(&lock, TTL).await.is_none());
    let other = lock.try_acquire("another key", TTL, Duration::ZERO).await;
    let error = other.expect_err("no room for it");
    assert_eq!(error.kind(), LockErrorKind::Full);
    let source = error.source().expect("a reason");
    assert!(source.to_string().contains("maxmemory"), "{source}");
    assert!(
        held.release().await.expect("well"),
        "a release needs no room"
    );
}

#[tokio::test]
async fn a_foreign_value_at_its_key_is_a_fault_or_somebody_elses() {
    let server = RedisServer::start();
    let lock = connect(&server.url()).await;
    server.cli(&["RPUSH", STORED, "x"]);
    let error = attempt(&lock, TTL, Duration::ZERO).await;
    let error = error.expect_err("another type");
    assert_eq!(error.kind(), LockErrorKind::Unreadable);
    let source = error.source().expect("a reason");
    assert!(source.to_string().contains(STORED), "{source}");
    server.cli(&["SET", STORED, "whatever"]);
    assert!(taken(&lock, TTL).await.is_none());
    sleep(millis(50)).await;
    assert_eq!(server.cli(&["GET", STORED]), "whatever");
}

#[tokio::test]
async fn through_sentinels_and_a_failover() {
    let sentinel = RedisSentinel::start();
    let lock = RedisLock::connect_sentinel(sentinel.urls(), sentinel.name(), "tests").await;
    let lock = lock.expect("a lock");
    let held = taken(&lock, TTL).await.expect("free");
    assert!(taken(&lock, TTL).await.is_none());
    assert!(held.release().await.expect("well"));
    sentinel.fail_over();
    // Faults until the new master is found, and never an answer of the old one.
    let began = Instant::now();
    let held = loop {
        match attempt(&lock, TTL, Duration::ZERO).await {
            Ok(held) => break held.expect("free"),
            Err(error) => assert!(began.elapsed() < millis(10_000), "{error}"),
        }
        sleep(millis(50)).await;
    };
    assert!(left(sentinel.master()) > 0);
    assert!(held.release().await.expect("well"));
}
