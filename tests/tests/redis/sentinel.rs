//! A master that sentinels watch over: one that crashes, is demoted, or that a sentinel knows no more.

use std::time::Duration;

use idempotent_runtime::{
    ErrorKind, RedisStore,
    store::{ClaimOutcome, Store as _, Token},
};
use idempotent_tests::{
    redis::RedisSentinel,
    store::{claim, key},
};
use tokio::time::timeout;

use super::bench::{Client, NAMESPACE, until};

async fn store(sentinel: &RedisSentinel) -> RedisStore {
    let urls = sentinel.urls();
    let store = RedisStore::connect_sentinel(urls, sentinel.name(), NAMESPACE).await;
    store.expect("a store")
}

#[tokio::test]
async fn a_demoted_or_dead_master_is_left_by_the_next_commands() {
    let mut sentinel = RedisSentinel::start();
    let store = store(&sentinel).await;
    let client = |n| Client {
        store: &store,
        key: key(n),
    };
    client(1)
        .claim(claim(Token::unique()))
        .await
        .expect("a claim");
    let mut watch = store.watch(&client(1).key).expect("a watch");
    timeout(Duration::from_millis(200), &mut watch)
        .await
        .expect_err("the claim stands");

    sentinel.fail_over();
    timeout(Duration::from_secs(2), watch)
        .await
        .expect("the old master says no more");
    let claimed = client(2)
        .claim(claim(Token::unique()))
        .await
        .expect("the new one is asked for");
    assert_eq!(claimed, ClaimOutcome::Claimed);
    let found = client(1)
        .claim(claim(Token::unique()))
        .await
        .expect("an answer");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "it was replicated: {found:?}"
    );

    sentinel.kill_master();
    until("another master is used", async || {
        client(3).claim(claim(Token::unique())).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_sentinel_that_hangs_or_is_dead_delays_nothing() {
    let sentinel = RedisSentinel::start();
    sentinel.sentinels()[0].freeze();
    let start = tokio::time::Instant::now();
    let store = store(&sentinel).await;
    store.probe().answer().await.expect("two are left");
    assert!(
        start.elapsed() < Duration::from_millis(500),
        "{:?}",
        start.elapsed()
    );
    sentinel.sentinels()[0].thaw();
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_an_error() {
    let sentinel = RedisSentinel::start();
    let store = RedisStore::connect_sentinel(sentinel.urls(), "nobody", NAMESPACE).await;
    let error = store.expect_err("no such master");
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("nobody"), "{error}");
}

#[tokio::test]
async fn a_frozen_master_is_left_once_another_is_chosen() {
    let sentinel = RedisSentinel::start();
    let store = store(&sentinel).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    client.claim(claim(Token::unique())).await.expect("a claim");
    let frozen = sentinel.master();
    frozen.freeze();
    until("a probe finds the other", async || {
        store.probe().answer().await.is_ok()
    })
    .await;
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("the other answers");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "it was replicated: {found:?}"
    );
    assert_ne!(sentinel.master().port(), frozen.port());
    frozen.thaw();
}

#[tokio::test]
async fn credentials_are_the_masters() {
    // The sentinels ask for none, and know no such user.
    let sentinel = RedisSentinel::with(&["user app on >secret ~* +@all"]);
    let with = |credentials: &str| {
        let urls = sentinel.urls();
        let urls = urls
            .iter()
            .map(|url| url.replace("://", &format!("://{credentials}@")));
        RedisStore::connect_sentinel(urls.collect::<Vec<_>>(), sentinel.name(), NAMESPACE)
    };
    let store = with("app:secret").await.expect("a store");
    let client = Client {
        store: &store,
        key: key(1),
    };
    client.claim(claim(Token::unique())).await.expect("a claim");
    let user = sentinel.master().cli(&["CLIENT", "LIST"]);
    assert!(user.contains("user=app"), "{user}");
    let error = with("app:wrong").await.expect_err("another password");
    assert_eq!(error.kind(), ErrorKind::Store);
}
