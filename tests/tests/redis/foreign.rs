//! What another program or another version has written is an error that names the key, and stays
//! as it is.

use idempotent_runtime::store::{StoreError, StoreErrorKind, Token};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, keys, store, stored};

fn must_name<T: std::fmt::Debug>(what: &str, key: &str, answer: Result<T, StoreError>) {
    let error = answer.expect_err(what);
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{what}: {error}");
    assert!(error.to_string().contains(key), "{what}: {error}");
}

#[tokio::test]
async fn values_of_every_type_and_of_another_version_stay_as_they_are() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let name = stored(&client.key);
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    let own = server.cli(&["GET", &name]);
    client
        .complete(token, record(3))
        .await
        .expect("a completion");
    let whole = server.cli(&["GET", &name]);

    let values: Vec<(&str, Vec<String>)> = [
        ("SET", vec!["hello"]),
        ("SET", vec![""]),
        ("SET", vec!["IDP"]),
        ("SET", vec!["IDP1"]),
        ("SET", vec!["IDP1P"]),
        ("SET", vec![&*format!("{own} and more")]),
        ("SET", vec![&*own.replacen("IDP1P", "IDP2P", 1)]),
        ("SET", vec![&*own.replacen("IDP1P", "IDP1X", 1)]),
        ("SET", vec![&*own.replacen("IDP1P", "IDP1C", 1)]),
        ("SET", vec![&*whole.replacen("IDP1C", "IDP2C", 1)]),
        ("SET", vec![&*whole.replacen("\"status\"", "\"x\"", 1)]),
        ("SET", vec![&*whole.replacen("201", "7", 1)]),
        ("LPUSH", vec!["a"]),
        ("SADD", vec!["a"]),
        ("ZADD", vec!["1", "a"]),
        ("HSET", vec!["a", "b"]),
        ("XADD", vec!["*", "a", "b"]),
        ("PFADD", vec!["a"]),
        ("SETBIT", vec!["7", "1"]),
    ]
    .map(|(command, words)| (command, words.into_iter().map(str::to_owned).collect()))
    .into();
    for (command, words) in values {
        let what = format!("{command} {words:?}");
        server.cli(&["DEL", &name]);
        let mut set = vec![command, &name];
        set.extend(words.iter().map(String::as_str));
        server.cli(&set);
        let before = server.cli(&["DUMP", &name]);

        let token = Token::unique();
        must_name(&what, &name, client.claim(claim(token)).await);
        must_name(&what, &name, client.renew(claim(token)).await);
        must_name(&what, &name, client.complete(token, record(9)).await);
        must_name(&what, &name, client.release(token).await);
        assert_eq!(server.cli(&["DUMP", &name]), before, "{what}");
        let left = keys(&server);
        assert_eq!(left.len(), 1, "{what}: {left:?}");
    }
}

#[tokio::test]
async fn members_that_a_later_release_adds_are_ignored() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    client
        .complete(token, record(3))
        .await
        .expect("a completion");
    let name = stored(&client.key);
    let later = server
        .cli(&["GET", &name])
        .replacen("{\"", "{\"later\":{\"a\":[1]},\"", 1);
    assert!(later.contains("later"), "{later}");
    server.cli(&["SET", &name, &later]);
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("a record");
    assert_eq!(
        found,
        idempotent_runtime::store::ClaimOutcome::Completed(record(3))
    );
}
