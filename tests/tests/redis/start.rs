//! What a store says of its server when it starts, and later when the server is there at last.

use idempotent_runtime::{
    ErrorKind, RedisStore,
    store::{ClaimOutcome, Store as _, StoreErrorKind, Token},
};
use idempotent_tests::{
    log::Log,
    redis::RedisServer,
    store::{claim, key},
};

use super::{
    bench::{Client, NAMESPACE, store, store_at},
    fake::{Fake, bulk},
};

async fn refused(url: &str, namespace: &str, kind: ErrorKind) -> String {
    let error = RedisStore::connect(url, namespace).await;
    let error = error.expect_err("the store is refused");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[tokio::test]
async fn names_what_is_wrong_with_its_arguments() {
    let configuration = ErrorKind::Configuration;
    for url in ["", "localhost", "http://localhost", "redis://localhost/x"] {
        refused(url, NAMESPACE, configuration).await;
    }
    let long = "x".repeat(65);
    for namespace in ["", "a b", "a{b", "a}b", "caf\u{e9}", "a\n", &long] {
        let message = refused("redis://127.0.0.1:1", namespace, configuration).await;
        assert!(message.contains("namespace"), "{message}");
    }
    let none: [&str; 0] = [];
    for error in [
        RedisStore::connect_cluster(none, NAMESPACE).await,
        RedisStore::connect_sentinel(none, "orders", NAMESPACE).await,
    ] {
        assert_eq!(error.expect_err("no address").kind(), configuration);
    }
    let message = refused("redis://user:secret@localhost/x", NAMESPACE, configuration).await;
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_version_without_the_command_is_an_error() {
    for version in ["redis_version:6.2.14", "redis_version:5.0.7"] {
        let server = Fake::of_version(version);
        let message = refused(&server.url(), NAMESPACE, ErrorKind::Store).await;
        let (_, version) = version.split_once(':').expect("a version");
        assert!(
            message.contains(version) && message.contains("7.0"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn valkey_and_servers_that_do_not_tell_are_taken() {
    for line in [
        "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0",
        "x:y",
    ] {
        store_at(&Fake::of_version(line).url()).await;
    }
    let silent = Fake::start(|command| {
        let forbidden = matches!(&*command[0].to_uppercase(), "INFO" | "ROLE" | "CLIENT");
        forbidden.then(|| "-NOPERM this user has no permissions\r\n".to_owned())
    });
    store_at(&silent.url()).await;
}

#[tokio::test]
async fn wrong_credentials_are_an_error() {
    let server = RedisServer::with(&["requirepass right", "user app on >secret ~* +@all"]);
    let (host, kind) = (server.address(), ErrorKind::Store);
    for url in [
        format!("redis://{host}"),
        format!("redis://:wrong@{host}"),
        format!("redis://app:wrong@{host}"),
        format!("redis://nobody:secret@{host}"),
    ] {
        let message = refused(&url, NAMESPACE, kind).await;
        assert!(message.contains(&host), "{message}");
        assert!(!message.contains("wrong"), "{message}");
    }
    for url in [
        format!("redis://:right@{host}"),
        format!("redis://app:secret@{host}"),
    ] {
        let store = store_at(&url).await;
        let client = Client {
            store: &store,
            key: key(1),
        };
        client
            .claim(claim(Token::unique()))
            .await
            .expect("an answer");
    }
}

#[tokio::test]
async fn an_evicting_policy_is_warned_of() {
    let (log, _guard) = Log::begin();
    let server = RedisServer::start();
    store(&server).await;
    assert_eq!(log.with("maxmemory-policy"), [""; 0]);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let store = store(&server).await;
    for _ in 0..3 {
        store.probe().answer().await.expect("the server is there");
    }
    let warned = log.with("maxmemory-policy");
    assert_eq!(warned.len(), 1, "{warned:?}");
    for part in ["WARN", "allkeys-lru", "noeviction", "a second time"] {
        assert!(warned[0].contains(part), "{part}: {warned:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_waited_for() {
    let (log, _guard) = Log::begin();
    let mut server = RedisServer::start();
    server.kill();
    let store = store(&server).await;
    assert_eq!(log.with("WARN").len(), 1, "{:?}", log.with("WARN"));
    let client = Client {
        store: &store,
        key: key(1),
    };
    for _ in 0..3 {
        let error = client
            .claim(claim(Token::unique()))
            .await
            .expect_err("nobody is there");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        let error = store.probe().answer().await.expect_err("nobody is there");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    server.restart();
    let claimed = client
        .claim(claim(Token::unique()))
        .await
        .expect("the next command connects");
    assert_eq!(claimed, ClaimOutcome::Claimed);
    assert_eq!(log.with("WARN").len(), 1, "{:?}", log.with("WARN"));
}

#[tokio::test]
async fn a_server_that_turns_out_to_be_too_old_is_complained_of_once() {
    let (log, _guard) = Log::begin();
    let there = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let fake = {
        let there = std::sync::Arc::clone(&there);
        Fake::start(move |command| {
            if !there.load(std::sync::atomic::Ordering::Relaxed) {
                return Some("-LOADING Redis is loading the dataset in memory\r\n".to_owned());
            }
            let asked = command.join(" ").eq_ignore_ascii_case("info server");
            asked.then(|| bulk("redis_version:6.2.14\r\n"))
        })
    };
    let store = store_at(&fake.url()).await;
    there.store(true, std::sync::atomic::Ordering::Relaxed);
    let client = Client {
        store: &store,
        key: key(1),
    };
    for _ in 0..3 {
        let error = client
            .claim(claim(Token::unique()))
            .await
            .expect_err("it is of no use");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.to_string().contains("6.2.14"), "{error}");
    }
    assert_eq!(log.with("ERROR").len(), 1, "{:?}", log.with("ERROR"));
}

#[tokio::test]
async fn a_replica_is_no_store_until_it_is_promoted() {
    let master = RedisServer::start();
    let replica = RedisServer::with(&[&format!("replicaof 127.0.0.1 {}", master.port())]);
    let store = store(&replica).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let error = client
        .claim(claim(Token::unique()))
        .await
        .expect_err("it only reads");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("no master"), "{error}");
    replica.cli(&["REPLICAOF", "NO", "ONE"]);
    client
        .claim(claim(Token::unique()))
        .await
        .expect("it is a master now");
}

#[tokio::test]
async fn a_connection_of_the_users_own_is_a_store() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).expect("an address");
    let manager = redis::aio::ConnectionManager::new(client.clone())
        .await
        .expect("a connection");
    let store = RedisStore::from_connection(manager, NAMESPACE)
        .await
        .expect("a store");
    idempotent_runtime::testing::contract(async || store.clone()).await;
    store.probe().answer().await.expect("it answers");

    let link = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let refused = RedisStore::from_connection(link, "a b").await;
    assert_eq!(
        refused.expect_err("no namespace").kind(),
        ErrorKind::Configuration
    );
}
