//! Replies that are lost: the command was carried out, and is sent again.

use idempotent_runtime::{
    RedisStore,
    store::{
        ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome, StoreError, StoreErrorKind,
        Token,
    },
};
use idempotent_tests::{
    proxy::{Proxy, Then},
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, keys, store_at};

async fn behind_a_proxy() -> (RedisServer, Proxy, RedisStore) {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    (server, proxy, store)
}

fn must_be_unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.expect_err("the reply was lost");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn every_command_finds_what_it_did_itself() {
    let (server, proxy, store) = behind_a_proxy().await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    // Makes the scripts known to the server, so that each command is one round trip.
    client.renew(claim(token)).await.expect("a renewal");
    client.release(token).await.expect("a release");
    client
        .complete(token, record(1))
        .await
        .expect("a completion");
    server.cli(&["FLUSHALL"]);
    let lose = || proxy.lose_replies(1, Then::Close);

    lose();
    let claimed = client.claim(claim(token)).await.expect("it is sent again");
    assert_eq!(claimed, ClaimOutcome::Claimed);
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("an answer");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );

    lose();
    let renewed = client.renew(claim(token)).await.expect("it is sent again");
    assert_eq!(renewed, RenewOutcome::Renewed);

    // One that goes through the script, and one that is staged.
    for bytes in [9, 40_000] {
        server.cli(&["FLUSHALL"]);
        client.claim(claim(token)).await.expect("a claim");
        lose();
        let completed = client
            .complete(token, record(bytes))
            .await
            .expect("it is sent again");
        assert_eq!(completed, CompleteOutcome::Stored);
        let found = client
            .claim(claim(Token::unique()))
            .await
            .expect("a record");
        assert_eq!(found, ClaimOutcome::Completed(record(bytes)));
        assert_eq!(keys(&server).len(), 1);
    }

    let client = Client {
        store: &store,
        key: key(2),
    };
    client.claim(claim(token)).await.expect("a claim");
    lose();
    let released = client.release(token).await.expect("it is sent again");
    assert_eq!(released, ReleaseOutcome::NotHeld, "nothing was left");
}

#[tokio::test]
async fn no_command_is_sent_for_ever() {
    let (server, proxy, store) = behind_a_proxy().await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    proxy.lose_replies(usize::MAX, Then::Close);
    must_be_unavailable(client.claim(claim(token)).await);
    must_be_unavailable(client.complete(token, record(9)).await);
    proxy.pass();
    let completed = client
        .complete(token, record(9))
        .await
        .expect("it has come back");
    assert_eq!(completed, CompleteOutcome::Stored);
    assert_eq!(keys(&server).len(), 1);
}

#[tokio::test]
async fn an_idle_connection_that_was_closed_costs_no_command() {
    let (server, _proxy, store) = behind_a_proxy().await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    let close = || server.cli(&["CLIENT", "KILL", "TYPE", "NORMAL"]);
    close();
    client
        .claim(claim(token))
        .await
        .expect("it is opened again");
    close();
    client
        .renew(claim(token))
        .await
        .expect("it is opened again");
    close();
    client
        .complete(token, record(9))
        .await
        .expect("it is opened again");
    close();
    client.release(token).await.expect("it is opened again");
}

#[tokio::test]
async fn a_claim_that_finds_itself_stands_for_a_whole_lease_again() {
    let (server, _proxy, store) = behind_a_proxy().await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let claim = claim(Token::unique());
    client.claim(claim).await.expect("a claim");
    let name = super::bench::stored(&client.key);
    server.cli(&["PEXPIRE", &name, "5000"]);
    assert_eq!(
        client.claim(claim).await.expect("its own"),
        ClaimOutcome::Claimed
    );
    let left: u64 = server.cli(&["PTTL", &name]).parse().expect("a number");
    assert!(left > 20_000, "{left} ms of {:?}", claim.lease);
}

#[tokio::test]
async fn a_reply_that_comes_too_late_is_nobody_elses() {
    let (_server, proxy, store) = behind_a_proxy().await;
    let client = |n| Client {
        store: &store,
        key: key(n),
    };
    client(1)
        .complete(Token::unique(), record(1))
        .await
        .expect("a completion");
    proxy.stall();
    for n in 2..6 {
        let late = tokio::time::Duration::from_millis(20);
        let (client, token) = (client(n), Token::unique());
        let claimed = tokio::time::timeout(late, client.claim(claim(token))).await;
        claimed.expect_err("nothing arrives");
        let completed = tokio::time::timeout(late, client.complete(token, record(2))).await;
        completed.expect_err("nothing arrives");
    }
    proxy.pass();
    for n in 10..20 {
        let (client, token) = (client(n), Token::unique());
        let claimed = client.claim(claim(token)).await.expect("a claim");
        assert_eq!(claimed, ClaimOutcome::Claimed);
        let size = usize::try_from(n).expect("a small number");
        client
            .complete(token, record(size))
            .await
            .expect("a completion");
        let found = client
            .claim(claim(Token::unique()))
            .await
            .expect("a record");
        assert_eq!(found, ClaimOutcome::Completed(record(size)));
    }
}
