//! A first request takes two round trips, a replay one.

use idempotent_runtime::store::{ClaimOutcome, CompleteOutcome, Token};
use idempotent_tests::{
    proxy::Proxy,
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, store_at};

#[tokio::test]
async fn b011_two_for_a_first_request_one_for_a_replay() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address().parse().expect("an address"));
    let store = store_at(&format!("redis://{}", proxy.address())).await;
    // The first completion of all finds that the server does not know the script yet.
    for (n, trips, bytes) in [(0, 3, 100), (1, 2, 100), (2, 2, 5_000), (3, 2, 100)] {
        let client = Client {
            store: &store,
            key: key(n),
        };
        let before = proxy.round_trips();
        let token = Token::unique();
        let claimed = client.claim(claim(token)).await.expect("a claim");
        assert_eq!(claimed, ClaimOutcome::Claimed);
        let completed = client
            .complete(token, record(bytes))
            .await
            .expect("a completion");
        assert_eq!(completed, CompleteOutcome::Stored);
        assert_eq!(proxy.round_trips() - before, trips, "first request {n}");

        let before = proxy.round_trips();
        let replayed = client
            .claim(claim(Token::unique()))
            .await
            .expect("a replay");
        assert_eq!(replayed, ClaimOutcome::Completed(record(bytes)));
        assert_eq!(proxy.round_trips() - before, 1, "replay {n}");
    }
}

#[tokio::test]
async fn b011_a_claim_is_one_command_and_a_completion_one_or_two() {
    // A small record the script writes with a `SET` of its own; a large one is staged by a `SET` of
    // the client's, which the very first completion sends once more.
    commands_of(100, 30, 0).await;
    commands_of(5_000, 31, 10).await;
}

async fn commands_of(bytes: usize, sets: u32, renames: u32) {
    let server = RedisServer::start();
    let store = super::bench::store(&server).await;
    let calls = |command: &str| {
        let stats = server.cli(&["INFO", "commandstats"]);
        let line = format!("cmdstat_{command}:calls=");
        let count = stats.lines().find_map(|stat| stat.strip_prefix(&*line));
        count.map_or(0, |count| {
            let count = count.split(',').next().expect("a count");
            count.parse::<u32>().expect("a number")
        })
    };
    for n in 0..10 {
        let client = Client {
            store: &store,
            key: key(n),
        };
        let token = Token::unique();
        client.claim(claim(token)).await.expect("a claim");
        client
            .complete(token, record(bytes))
            .await
            .expect("a completion");
        client
            .claim(claim(Token::unique()))
            .await
            .expect("a replay");
    }
    // One claim, one record, one replay.
    assert_eq!((calls("set"), calls("rename")), (sets, renames));
    assert_eq!((calls("evalsha"), calls("eval")), (10, 1));
    assert_eq!((calls("get"), calls("pttl")), (0, 0));
}
