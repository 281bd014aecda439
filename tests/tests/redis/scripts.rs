//! A server that has forgotten the scripts, or what was staged for them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use idempotent_runtime::store::{
    CompleteOutcome, ReleaseOutcome, RenewOutcome, StoreErrorKind, Token,
};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, key, record},
};

use super::{
    bench::{Client, keys, store, store_at, stored},
    fake::Fake,
};

#[tokio::test]
async fn are_sent_again_where_they_were_flushed() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let forget = || assert_eq!(server.cli(&["SCRIPT", "FLUSH"]), "OK");
    for (n, bytes) in [(0, 9), (1, 9), (2, LARGE), (3, LARGE)] {
        let client = Client {
            store: &store,
            key: key(n),
        };
        let token = Token::unique();
        client.claim(claim(token)).await.expect("a claim");
        forget();
        let renewed = client.renew(claim(token)).await.expect("a renewal");
        assert_eq!(renewed, RenewOutcome::Renewed);
        forget();
        let completed = client
            .complete(token, record(bytes))
            .await
            .expect("a completion");
        assert_eq!(completed, CompleteOutcome::Stored);
        forget();
        let released = client.release(token).await.expect("a release");
        assert_eq!(released, ReleaseOutcome::Completed(record(bytes)));
        assert_eq!(
            keys(&server).len(),
            1 + usize::try_from(n).expect("a small number")
        );
    }
}

/// A record that is staged, since it is too large to go through a script.
const LARGE: usize = 40_000;

/// Answers completions with what the script says when nothing is staged, so many times.
fn loses_what_is_staged(times: u32) -> Fake {
    let left = AtomicU32::new(times);
    Fake::start(move |command| {
        let lost = || {
            left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        (command[0] == "EVALSHA").then(|| if lost() { ":0" } else { ":1" }.to_owned() + "\r\n")
    })
}

#[tokio::test]
async fn what_was_staged_and_is_gone_is_staged_again() {
    let server = loses_what_is_staged(2);
    let store = store_at(&server.url()).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let completed = client.complete(Token::unique(), record(LARGE)).await;
    assert_eq!(completed.expect("a completion"), CompleteOutcome::Stored);
}

#[tokio::test]
async fn what_is_staged_and_never_there_is_an_error() {
    let server = loses_what_is_staged(u32::MAX);
    let store = store_at(&server.url()).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let completed = client.complete(Token::unique(), record(LARGE)).await;
    let error = completed.expect_err("nothing was stored");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains(&stored(&key(1))), "{error}");
}
