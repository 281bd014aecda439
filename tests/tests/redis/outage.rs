//! Servers that crash, hang, forget, or whose network goes silent.

use std::time::Duration;

use idempotent_runtime::store::{
    ClaimOutcome, CompleteOutcome, RenewOutcome, Store as _, StoreErrorKind, Token,
};
use idempotent_tests::{
    proxy::Proxy,
    redis::RedisServer,
    store::{claim, key, record},
};
use tokio::time::{Instant, timeout};

use super::bench::{Client, store, store_at, stored, until};

/// What the engine waits for a command.
const LATE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_server_that_was_restarted_empty_takes_claims_back() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let client = |n| Client {
        store: &store,
        key: key(n),
    };
    let token = Token::unique();
    for n in 1..3 {
        client(n).claim(claim(token)).await.expect("a claim");
    }
    server.restart_empty();
    let renewed = client(1)
        .renew(claim(token))
        .await
        .expect("it is opened again");
    assert_eq!(renewed, RenewOutcome::Restored);
    let completed = client(2)
        .complete(token, record(1))
        .await
        .expect("a completion");
    assert_eq!(completed, CompleteOutcome::Stored);
}

#[tokio::test]
async fn an_evicted_claim_is_restored_or_completed() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    server.cli(&["DEL", &stored(&client.key)]);
    let renewed = client.renew(claim(token)).await.expect("a renewal");
    assert_eq!(renewed, RenewOutcome::Restored);
    server.cli(&["DEL", &stored(&client.key)]);
    let completed = client
        .complete(token, record(1))
        .await
        .expect("a completion");
    assert_eq!(completed, CompleteOutcome::Stored);
}

#[tokio::test]
async fn a_crash_is_noticed_at_once_and_over_with_the_restart() {
    let mut server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    client.claim(claim(Token::unique())).await.expect("a claim");
    server.kill();
    let start = Instant::now();
    for _ in 0..20 {
        let error = client
            .claim(claim(Token::unique()))
            .await
            .expect_err("nobody is there");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    server.restart();
    let claimed = client
        .claim(claim(Token::unique()))
        .await
        .expect("the next command connects");
    assert_eq!(claimed, ClaimOutcome::Claimed);
}

#[tokio::test]
async fn a_frozen_server_is_found_by_a_probe_once_it_goes_on() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = |n| Client {
        store: &store,
        key: key(n),
    };
    client(1)
        .claim(claim(Token::unique()))
        .await
        .expect("a claim");
    server.freeze();
    timeout(LATE, client(2).claim(claim(Token::unique())))
        .await
        .expect_err("nothing comes");
    let start = Instant::now();
    store.probe().answer().await.expect_err("nothing comes");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    server.thaw();
    let start = Instant::now();
    until("a probe succeeds", async || {
        store.probe().answer().await.is_ok()
    })
    .await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    client(3)
        .claim(claim(Token::unique()))
        .await
        .expect("it answers again");
}

/// What was sent on the connection before, and given up, is carried out before what is sent on the
/// next one, or never.
#[tokio::test]
async fn a_command_that_was_given_up_never_comes_after_a_later_one() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    // It is under way for longer than anybody waits.
    proxy.delay(LATE * 4);
    let claimed = timeout(LATE, client.claim(claim(token))).await;
    claimed.expect_err("nothing comes");
    proxy.pass();
    store.probe().answer().await.expect("new connections work");
    client.release(token).await.expect("an answer");
    tokio::time::sleep(LATE * 5).await;
    assert_eq!(server.cli(&["EXISTS", &stored(&client.key)]), "0");
}

#[tokio::test]
async fn a_connection_on_which_nothing_arrives_is_replaced_and_closed() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    client.claim(claim(Token::unique())).await.expect("a claim");
    let connected = || server.cli(&["CLIENT", "LIST"]).lines().count() - 1;
    assert_eq!(connected(), 1);

    proxy.strand();
    timeout(LATE, client.claim(claim(Token::unique())))
        .await
        .expect_err("nothing comes");
    timeout(LATE, client.claim(claim(Token::unique())))
        .await
        .expect_err("nor later");
    let before = proxy.connections();
    let probes = (0..50).map(|_| store.probe().answer());
    for probed in futures_util::future::join_all(probes).await {
        probed.expect("new connections work");
    }
    assert_eq!(
        proxy.connections(),
        before + 1,
        "probes at the same time are one"
    );
    client
        .claim(claim(Token::unique()))
        .await
        .expect("it answers again");
    // Only the server can close the old one; the proxy keeps it open.
    assert_eq!(connected(), 1, "{}", server.cli(&["CLIENT", "LIST"]));
}
