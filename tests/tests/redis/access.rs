//! A user who may do what the page of the store lists, and no more.

use idempotent_runtime::store::{Store as _, StoreErrorKind, Token};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, store_at, stored};

/// What the page of `RedisStore` lists.
const NEEDED: &str = "user app on >secret resetkeys ~tests:* resetchannels -@all +ping +set +get +getrange +exists +pttl +pexpire +rename +del +unlink +evalsha +eval";
/// What it lists besides, for those who want it all.
const WANTED: &str = "+info +role +client|info +client|kill +client|tracking";

async fn behaves(rules: &str) {
    let server = RedisServer::with(&[rules]);
    let url = format!("redis://app:secret@{}", server.address());
    idempotent_runtime::testing::contract(async || store_at(&url).await).await;

    let store = store_at(&url).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    client.renew(claim(token)).await.expect("a renewal");
    client.release(token).await.expect("a release");
    client
        .complete(token, record(9))
        .await
        .expect("a completion");
    store.probe().answer().await.expect("a probe");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    client
        .claim(claim(token))
        .await
        .expect("a record, though the server is full");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    server.cli(&["SET", &stored(&client.key), "foreign"]);
    let error = client.release(token).await.expect_err("a foreign value");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    let denied = server.cli(&["ACL", "LOG"]);
    assert!(!denied.contains("key"), "{denied}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_needed_is_enough() {
    behaves(NEEDED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wanted_leaves_nothing_denied() {
    let rules = format!("{NEEDED} {WANTED}");
    behaves(&rules).await;
    let server = RedisServer::with(&[&rules]);
    let store = store_at(&format!("redis://app:secret@{}", server.address())).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    client.claim(claim(Token::unique())).await.expect("a claim");
    let watch = store.watch(&client.key).expect("the user may track keys");
    store.probe().answer().await.expect("a probe");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    drop(watch);
    assert_eq!(server.cli(&["ACL", "LOG"]), "");
}

#[tokio::test]
async fn a_command_that_is_not_allowed_is_named() {
    let server = RedisServer::with(&["user app on >secret ~tests:* +ping +set +get"]);
    let store = store_at(&format!("redis://app:secret@{}", server.address())).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    let error = client.release(token).await.expect_err("no `evalsha`");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    for part in ["permission", "grant", "RedisStore"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}
