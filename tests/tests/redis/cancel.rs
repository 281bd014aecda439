//! Commands that are given up at any moment leave no key that stands for ever.

use std::time::Duration;

use idempotent_runtime::{
    RedisStore,
    store::{CompleteOutcome, Store as _, Token},
};
use idempotent_tests::{
    proxy::Proxy,
    redis::RedisServer,
    store::{HOUR, claim, key, record},
};
use tokio::time::{sleep, timeout};

use super::bench::{Client, keys, store, store_at};

/// Spread over what a command takes, from nothing to long after its end.
fn soon(n: u64) -> Duration {
    Duration::from_micros(n * 37 % 1500)
}

async fn give_up_at_random(store: &RedisStore, rounds: u64, pace: u32) {
    for n in 0..rounds {
        let key = key(n % 7);
        let (token, record) = (Token::unique(), record(40_000));
        drop(timeout(soon(n) * pace, store.claim(&key, claim(token)).answer()).await);
        drop(timeout(soon(n + 1) * pace, store.renew(&key, claim(token)).answer()).await);
        let completed = store.complete(&key, token, record, HOUR).answer();
        drop(timeout(soon(n + 2) * pace, completed).await);
        drop(timeout(soon(n + 3) * pace, store.release(&key, token).answer()).await);
    }
}

fn all_end(server: &RedisServer) {
    for (key, left) in keys(server) {
        assert!(left >= 0, "{key} stands for ever");
        if key.contains("}:") {
            assert!(left <= 10_000, "{key} is staged for {left} ms");
        }
    }
}

#[tokio::test]
async fn no_key_is_without_an_end() {
    let server = RedisServer::start();
    let store = store(&server).await;
    give_up_at_random(&store, 300, 1).await;
    sleep(Duration::from_millis(50)).await;
    assert!(!keys(&server).is_empty(), "nothing was carried out");
    all_end(&server);
}

#[tokio::test]
async fn nor_where_the_connection_breaks_in_between() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    let breaking = async {
        for n in 0..200 {
            sleep(soon(n) * 4).await;
            proxy.cut();
            proxy.pass();
        }
    };
    tokio::join!(breaking, give_up_at_random(&store, 200, 4));
    sleep(Duration::from_millis(50)).await;
    all_end(&server);
    let client = Client {
        store: &store,
        key: key(99),
    };
    let completed = client.complete(Token::unique(), record(1)).await;
    assert_eq!(
        completed.expect("it has come back"),
        CompleteOutcome::Stored
    );
}
