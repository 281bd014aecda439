//! A server at its `maxmemory` that evicts nothing, as it should.

use idempotent_runtime::store::{
    ClaimOutcome, ReleaseOutcome, RenewOutcome, StoreErrorKind, Token,
};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, keys, store};

#[tokio::test]
async fn replays_but_takes_no_new_claims() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = |n| Client {
        store: &store,
        key: key(n),
    };
    let (held, finished) = (Token::unique(), Token::unique());
    client(1).claim(claim(held)).await.expect("a claim");
    client(2)
        .complete(finished, record(100))
        .await
        .expect("a completion");
    for limit in [("maxmemory-policy", "noeviction"), ("maxmemory", "1")] {
        server.cli(&["CONFIG", "SET", limit.0, limit.1]);
    }
    let token = Token::unique();

    let found = client(2)
        .claim(claim(token))
        .await
        .expect("a record can be read");
    assert_eq!(found, ClaimOutcome::Completed(record(100)));
    let found = client(1)
        .claim(claim(token))
        .await
        .expect("a claim can be read");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
    let error = client(3).claim(claim(token)).await.expect_err("no room");
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert!(error.to_string().contains("maxmemory"), "{error}");

    let renewed = client(1)
        .renew(claim(held))
        .await
        .expect("nothing new is stored");
    assert_eq!(renewed, RenewOutcome::Renewed);
    for bytes in [100, 5_000] {
        let error = client(1)
            .complete(held, record(bytes))
            .await
            .expect_err("no room");
        assert_eq!(error.kind(), StoreErrorKind::Full);
    }
    let found = client(1)
        .claim(claim(token))
        .await
        .expect("the claim still stands");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
    let released = client(1).release(held).await.expect("that makes room");
    assert_eq!(released, ReleaseOutcome::Released);
    assert_eq!(keys(&server).len(), 1);

    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let found = client(3).claim(claim(token)).await.expect("room again");
    assert_eq!(found, ClaimOutcome::Claimed);
}
