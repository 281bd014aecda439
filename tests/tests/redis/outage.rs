//! Servers that crash, hang, forget, or whose network goes silent.

use std::time::{Duration, Instant};

use idempotent_runtime::{
    RedisStore,
    store::{ClaimOutcome, CompleteOutcome, RenewOutcome, Store as _, StoreErrorKind, Token},
};
use idempotent_tests::{
    proxy::Proxy,
    redis::{RedisCluster, RedisServer},
    store::{claim, key, record},
};
use tokio::time::timeout;

use super::bench::{Client, NAMESPACE, store, store_at, stored, until};

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
    let renewed = match client(1).renew(claim(token)).await {
        Ok(renewed) => renewed,
        // The connection is found to be gone by the first command.
        Err(_) => client(1)
            .renew(claim(token))
            .await
            .expect("the next command connects"),
    };
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
async fn a_command_that_was_given_up_comes_before_a_later_one() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for n in 0..30 {
        let client = Client {
            store: &store,
            key: key(n),
        };
        let token = Token::unique();
        server.freeze();
        timeout(LATE / 10, client.claim(claim(token)))
            .await
            .expect_err("nothing comes");
        let thawed = async {
            tokio::time::sleep(LATE / 5).await;
            server.thaw();
        };
        let (probed, ()) = tokio::join!(store.probe().answer(), thawed);
        probed.expect("it goes on");
        client.release(token).await.expect("an answer");
        tokio::time::sleep(Duration::from_millis(3)).await;
        assert_eq!(
            server.cli(&["EXISTS", &stored(&client.key)]),
            "0",
            "round {n}"
        );
    }
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

#[tokio::test]
async fn a_cluster_loses_one_node_and_keeps_the_others() {
    let mut cluster = RedisCluster::with(&["cluster-require-full-coverage no"]);
    let store = RedisStore::connect_cluster(cluster.urls(), NAMESPACE)
        .await
        .expect("a store");
    let owned_by = |cluster: &RedisCluster, at: usize| {
        let node = cluster.nodes()[at].port();
        (0..100)
            .map(key)
            .find(|key| cluster.owner(&stored(key)).port() == node)
    };
    let lost = owned_by(&cluster, 0).expect("a key of the first node");
    let kept = owned_by(&cluster, 1).expect("a key of the second node");
    let lost = Client {
        store: &store,
        key: lost,
    };
    let kept = Client {
        store: &store,
        key: kept,
    };
    lost.claim(claim(Token::unique())).await.expect("a claim");
    cluster.nodes_mut()[0].kill();
    let answer = timeout(Duration::from_secs(5), lost.claim(claim(Token::unique()))).await;
    if let Ok(answer) = answer {
        assert_eq!(
            answer.expect_err("its node is gone").kind(),
            StoreErrorKind::Unavailable
        );
    }
    let found = timeout(Duration::from_secs(5), kept.claim(claim(Token::unique()))).await;
    found.expect("in time").expect("its node is there");
    cluster.nodes_mut()[0].restart();
    until("the node is used again", async || {
        let found = timeout(Duration::from_secs(1), lost.claim(claim(Token::unique()))).await;
        matches!(found, Ok(Ok(_)))
    })
    .await;
}

#[tokio::test]
async fn a_clusters_old_connections_are_closed_by_a_probe() {
    let cluster = RedisCluster::start();
    let store = RedisStore::connect_cluster(cluster.urls(), NAMESPACE)
        .await
        .expect("a store");
    for n in 0..30 {
        let client = Client {
            store: &store,
            key: key(n),
        };
        client.claim(claim(Token::unique())).await.expect("a claim");
    }
    let ids = || -> Vec<String> {
        let nodes = cluster.nodes().iter();
        nodes
            .flat_map(|node| {
                let list = node.cli(&["CLIENT", "LIST", "TYPE", "NORMAL"]);
                let port = node.port();
                list.lines()
                    .filter(|line| !line.contains("cmd=client|list"))
                    .filter_map(|line| line.split(' ').next())
                    .map(|id| format!("{port} {id}"))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let before = ids();
    assert!(before.len() >= 3, "{before:?}");
    store.probe().answer().await.expect("the cluster is there");
    let after = ids();
    assert!(
        before.iter().all(|id| !after.contains(id)),
        "{before:?} {after:?}"
    );
}
