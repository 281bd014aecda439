//! The servers that the other tests rely on.

use std::time::Duration;

use idempotent_tests::redis::{RedisCluster, RedisSentinel, RedisServer};
use tokio::time::Instant;

#[tokio::test]
async fn one_is_killed_frozen_and_started_again() {
    let mut server = RedisServer::start();
    assert_eq!(server.cli(&["SET", "key", "value"]), "OK");
    server.freeze();
    let frozen = Instant::now();
    let thawed = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.thaw();
    };
    let asked = async {
        let client = redis::Client::open(server.url()).expect("an address");
        let mut link = client
            .get_multiplexed_async_connection()
            .await
            .expect("a connection");
        let value: String = redis::cmd("GET")
            .arg("key")
            .query_async(&mut link)
            .await
            .expect("a value");
        value
    };
    let ((), value) = tokio::join!(thawed, asked);
    assert_eq!(value, "value");
    assert!(frozen.elapsed() >= Duration::from_millis(200));
    server.kill();
    server.restart();
    assert_eq!(server.cli(&["GET", "key"]), "");
}

#[test]
fn one_with_a_file_forgets_when_told_to() {
    let mut server = RedisServer::with(&["appendonly yes", "appendfsync always"]);
    server.cli(&["SET", "key", "value"]);
    server.restart();
    assert_eq!(server.cli(&["GET", "key"]), "value");
    server.restart_empty();
    assert_eq!(server.cli(&["GET", "key"]), "");
}

#[test]
fn a_cluster_shares_the_slots() {
    let cluster = RedisCluster::start();
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(cluster.cli(key, &["SET", key, key]), "OK");
    }
}

#[test]
fn sentinels_choose_another_master() {
    let mut sentinel = RedisSentinel::start();
    let first = sentinel.master().port();
    sentinel.fail_over();
    let second = sentinel.master().port();
    assert_ne!(first, second);
    assert_eq!(sentinel.kill_master().port(), second);
    assert_eq!(sentinel.master().port(), first);
}
