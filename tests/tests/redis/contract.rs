//! The rules of a store, on every kind of server.

use idempotent_runtime::{RedisStore, store::Store as _, testing};
use idempotent_tests::redis::{RedisCluster, RedisSentinel, RedisServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_by_the_same_contract() {
    let server = RedisServer::start();
    let url = server.url();
    testing::contract(async || RedisStore::connect(&url, "tests").await.expect("a store")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_cluster_by_the_same_contract() {
    let cluster = RedisCluster::start();
    let urls = cluster.urls();
    let store = RedisStore::connect_cluster(urls, "tests")
        .await
        .expect("a store");
    testing::contract(async || store.clone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b011_redis_sentinel_by_the_same_contract() {
    let mut sentinel = RedisSentinel::start();
    let store = RedisStore::connect_sentinel(sentinel.urls(), sentinel.name(), "tests");
    let store = store.await.expect("a store");
    testing::contract(async || store.clone()).await;

    sentinel.fail_over();
    store
        .probe()
        .answer()
        .await
        .expect("the new master is found");
    testing::contract(async || store.clone()).await;

    sentinel.kill_master();
    store
        .probe()
        .answer()
        .await
        .expect("the master is found again");
    testing::contract(async || store.clone()).await;
}
