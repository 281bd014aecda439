//! Waiters are woken by the server, and only when the claim that they wait for has gone.

use std::time::Duration;

use idempotent_runtime::{
    RedisStore,
    store::{BoxFuture, Store as _, Token},
};
use idempotent_tests::{
    proxy::Proxy,
    redis::{RedisCluster, RedisServer},
    store::{claim, key, record},
};
use tokio::time::{Instant, sleep, timeout};

use super::bench::{Client, NAMESPACE, store, store_at, stored, until};

/// Time for what should not happen to happen.
const LULL: Duration = Duration::from_millis(200);

async fn held(store: &RedisStore, n: u64) -> (Client<'_>, Token) {
    let client = Client { store, key: key(n) };
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    (client, token)
}

async fn must_wait(watch: &mut BoxFuture<()>, situation: &str) {
    let ended = timeout(LULL, watch).await;
    assert!(ended.is_err(), "the watch ended {situation}");
}

/// How long it took.
async fn must_end(watch: BoxFuture<()>, situation: &str) -> Duration {
    let start = Instant::now();
    let ended = timeout(Duration::from_secs(2), watch).await;
    assert!(ended.is_ok(), "the watch did not end {situation}");
    start.elapsed()
}

fn tracking(server: &RedisServer) -> u32 {
    let info = server.cli(&["INFO", "clients"]);
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("tracking_clients:"));
    line.expect("a count").trim().parse().expect("a number")
}

#[tokio::test]
async fn renewals_wake_nobody_and_the_end_all() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (client, token) = held(&store, 1).await;
    let mut watches: Vec<_> = (0..20)
        .map(|_| store.watch(&client.key).expect("a watch"))
        .collect();
    must_wait(&mut watches[0], "at once").await;
    for _ in 0..3 {
        client.renew(claim(token)).await.expect("a renewal");
        must_wait(&mut watches[0], "when the claim was renewed").await;
    }
    assert_eq!(tracking(&server), 1, "one connection for all");
    client
        .complete(token, record(1))
        .await
        .expect("a completion");
    for watch in watches {
        let late = must_end(watch, "when the claim was completed").await;
        assert!(late < Duration::from_millis(100), "woken after {late:?}");
    }
}

#[tokio::test]
async fn ends_however_the_claim_goes() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for n in 0..5 {
        let (client, token) = held(&store, n).await;
        let mut watch = store.watch(&client.key).expect("a watch");
        must_wait(&mut watch, "at once").await;
        match n {
            0 => drop(client.release(token).await.expect("a release")),
            1 => drop(
                client
                    .complete(Token::unique(), record(1))
                    .await
                    .expect("a completion"),
            ),
            2 => drop(server.cli(&["FLUSHALL"])),
            3 => drop(server.cli(&["PEXPIRE", &stored(&client.key), "50"])),
            _ => {
                // Gone, and another's by the time that anybody looks.
                let other = server.cli(&["GET", &stored(&client.key)]);
                let (head, rest) = other.split_at(6);
                let other = format!("{head}{}{}\n", "0".repeat(32), &rest[32..]);
                server.cli(&["SET", &stored(&client.key), &other]);
            }
        }
        must_end(watch, &format!("in case {n}")).await;
    }
}

#[tokio::test]
async fn looks_at_a_key_once_for_all_who_wait() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (client, token) = held(&store, 1).await;
    let looks = || {
        let stats = server.cli(&["INFO", "commandstats"]);
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_getrange:calls="));
        line.map_or(0, |line| {
            line.split(',')
                .next()
                .expect("a count")
                .parse()
                .expect("a number")
        })
    };
    let mut watches: Vec<_> = (0..100)
        .map(|_| store.watch(&client.key).expect("a watch"))
        .collect();
    must_wait(&mut watches[0], "at once").await;
    assert_eq!(looks(), 1);
    client.renew(claim(token)).await.expect("a renewal");
    must_wait(&mut watches[0], "when the claim was renewed").await;
    // The script reads it as well.
    assert_eq!(looks(), 3);
    drop(watches);
    client.renew(claim(token)).await.expect("a renewal");
    sleep(LULL).await;
    assert_eq!(looks(), 4, "nobody waits any more");
}

#[tokio::test]
async fn a_lost_connection_ends_all_and_is_opened_again() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    let (client, token) = held(&store, 1).await;
    let mut watch = store.watch(&client.key).expect("a watch");
    must_wait(&mut watch, "at once").await;
    proxy.cut();
    must_end(watch, "when its connection broke").await;
    proxy.pass();
    let mut again = store
        .watch(&client.key)
        .expect("the connection was there before");
    must_wait(&mut again, "at once").await;
    until("a command is carried out", async || {
        client.complete(token, record(1)).await.is_ok()
    })
    .await;
    must_end(again, "when the claim was completed").await;
}

#[tokio::test]
async fn a_silent_connection_is_given_up() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    let (client, _token) = held(&store, 1).await;
    let mut watch = store.watch(&client.key).expect("a watch");
    must_wait(&mut watch, "at once").await;
    proxy.strand();
    let ended = timeout(Duration::from_secs(8), watch).await;
    assert!(
        ended.is_ok(),
        "the watch of a silent connection did not end"
    );
}

#[tokio::test]
async fn is_none_for_a_while_where_the_server_cannot_tell() {
    let server = RedisServer::with(&["user app on >secret ~* +@all -client|tracking"]);
    let store = store_at(&format!("redis://app:secret@{}", server.address())).await;
    let (client, _token) = held(&store, 1).await;
    let first = store.watch(&client.key).expect("it is not known yet");
    must_end(first, "where keys may not be tracked").await;
    assert!(store.watch(&client.key).is_none(), "waiters poll meanwhile");

    let cluster = RedisCluster::start();
    let store = RedisStore::connect_cluster(cluster.urls(), NAMESPACE)
        .await
        .expect("a store");
    assert!(store.watch(&key(1)).is_none());
}

#[tokio::test]
async fn its_connection_ends_with_the_store() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (client, _token) = held(&store, 1).await;
    let mut watch = store.watch(&client.key).expect("a watch");
    must_wait(&mut watch, "at once").await;
    drop(watch);
    assert_eq!(tracking(&server), 1);
    drop(store);
    until("the connections are closed", async || {
        server.cli(&["CLIENT", "LIST"]).lines().count() == 1
    })
    .await;
}
