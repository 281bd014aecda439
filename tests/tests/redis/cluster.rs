//! A cluster that loses a node, or moves a slot.

use std::time::Duration;

use idempotent_runtime::{
    ErrorKind, RedisStore, StorageKey,
    store::{ClaimOutcome, CompleteOutcome, RenewOutcome, Store as _, StoreErrorKind, Token},
};
use idempotent_tests::{
    redis::{RedisCluster, RedisServer},
    store::{claim, key, record},
};
use tokio::time::timeout;

use super::bench::{Client, NAMESPACE, stored, until};

async fn store(cluster: &RedisCluster) -> RedisStore {
    let store = RedisStore::connect_cluster(cluster.urls(), NAMESPACE).await;
    store.expect("a store")
}

fn owned_by(cluster: &RedisCluster, node: usize) -> StorageKey {
    let port = cluster.nodes()[node].port();
    let mut keys = (0..100).map(key);
    let owned = keys.find(|key| cluster.owner(&stored(key)).port() == port);
    owned.expect("one of a hundred keys is here")
}

#[tokio::test]
async fn a_cluster_loses_one_node_and_keeps_the_others() {
    let mut cluster = RedisCluster::with(&["cluster-require-full-coverage no"]);
    let store = store(&cluster).await;
    let client = |node| Client {
        store: &store,
        key: owned_by(&cluster, node),
    };
    let (lost, kept) = (client(0), client(1));
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
async fn is_waited_for_where_it_is_not_there_and_refused_where_it_refuses() {
    let mut cluster = RedisCluster::with(&["user app on >secret ~* +@all"]);
    let with = |credentials: &str| {
        let urls = cluster.urls();
        let urls = urls
            .iter()
            .map(|url| url.replace("://", &format!("://{credentials}@")));
        RedisStore::connect_cluster(urls.collect::<Vec<_>>(), NAMESPACE)
    };
    with("app:secret").await.expect("a store");
    let error = with("app:wrong").await.expect_err("another password");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");

    let key = owned_by(&cluster, 0);
    for node in cluster.nodes_mut() {
        node.kill();
    }
    let store = store(&cluster).await;
    let client = Client { store: &store, key };
    let error = client
        .claim(claim(Token::unique()))
        .await
        .expect_err("nobody is there");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    for node in cluster.nodes_mut() {
        node.restart();
    }
    until("the cluster is used", async || {
        let claimed = timeout(Duration::from_secs(1), client.claim(claim(Token::unique())));
        matches!(claimed.await, Ok(Ok(_)))
    })
    .await;
}

#[tokio::test]
async fn a_clusters_old_connections_are_closed_by_a_probe() {
    let cluster = RedisCluster::start();
    let store = store(&cluster).await;
    for n in 0..30 {
        let client = Client {
            store: &store,
            key: key(n),
        };
        client.claim(claim(Token::unique())).await.expect("a claim");
    }
    let closed = |node: &RedisServer| {
        let stats = node.cli(&["INFO", "commandstats"]);
        let calls = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_client|kill:"));
        calls.map(str::to_owned)
    };
    let links = |node: &RedisServer| -> Vec<String> {
        let list = node.cli(&["CLIENT", "LIST", "TYPE", "NORMAL"]);
        let others = list
            .lines()
            .filter(|line| !line.contains("cmd=client|list"));
        others
            .map(|line| line.split(" laddr").next().expect("an address").to_owned())
            .collect()
    };
    let before: Vec<_> = cluster.nodes().iter().map(links).collect();
    store.probe().answer().await.expect("the cluster is there");
    for (node, before) in cluster.nodes().iter().zip(before) {
        let calls = closed(node).expect("an old connection was closed");
        assert!(calls.contains("calls=1,"), "{calls}");
        assert!(calls.contains("failed_calls=0"), "{calls}");
        let after = links(node);
        assert!(
            !before.is_empty() && before.iter().all(|link| !after.contains(link)),
            "{before:?} {after:?}"
        );
    }
}

/// What an operator does to move a slot: its keys go over, and then both nodes are told.
struct Move<'a> {
    from: &'a RedisServer,
    to: &'a RedisServer,
    slot: String,
}

impl<'a> Move<'a> {
    fn begin(from: &'a RedisServer, to: &'a RedisServer, key: &str) -> Self {
        let slot = from.cli(&["CLUSTER", "KEYSLOT", key]);
        let (source, target) = (from.cli(&["CLUSTER", "MYID"]), to.cli(&["CLUSTER", "MYID"]));
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        let port = to.port().to_string();
        from.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "1000"]);
        Self { from, to, slot }
    }

    fn finish(self) {
        let target = self.to.cli(&["CLUSTER", "MYID"]);
        for node in [self.to, self.from] {
            node.cli(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &target]);
        }
    }
}

#[tokio::test]
async fn a_slot_that_moves_is_no_outage() {
    let cluster = RedisCluster::start();
    let store = store(&cluster).await;
    let client = Client {
        store: &store,
        key: owned_by(&cluster, 0),
    };
    let name = stored(&client.key);
    let token = Token::unique();
    let claimed = client.claim(claim(token)).await.expect("a claim");
    assert_eq!(claimed, ClaimOutcome::Claimed);
    let [one, two, _] = cluster.nodes() else {
        panic!("three nodes");
    };

    let moving = Move::begin(one, two, &name);
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("it is followed");
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
    let renewed = client.renew(claim(token)).await.expect("it is followed");
    assert_eq!(renewed, RenewOutcome::Renewed);
    moving.finish();
    let renewed = client.renew(claim(token)).await.expect("it is followed");
    assert_eq!(renewed, RenewOutcome::Renewed);

    let moving = Move::begin(two, one, &name);
    // Two keys at once are not served while their slot moves.
    let completed = client
        .complete(token, record(9))
        .await
        .expect("it is followed");
    assert_eq!(completed, CompleteOutcome::Stored);
    moving.finish();
    let completed = client
        .complete(token, record(9))
        .await
        .expect("it is followed");
    assert_eq!(completed, CompleteOutcome::Stored);
}
