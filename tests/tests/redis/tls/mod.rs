//! TLS, with a certificate that only this test's own process trusts.

use std::{env, path::Path, process::Command};

use idempotent_runtime::{
    ErrorKind, RedisStore,
    store::{ClaimOutcome, Token},
};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, key, record},
};

use super::bench::{Client, NAMESPACE, store_at};

/// Tells the process that is started again what to connect to.
const URL: &str = "IDEMPOTENT_TESTS_URL";

fn file(name: &str) -> String {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/redis/tls");
    files.join(name).display().to_string()
}

/// A server whose one port speaks TLS, beside the plain one for `redis-cli`.
fn server() -> (RedisServer, String) {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address").port()
    };
    let server = RedisServer::with(&[
        &format!("tls-port {port}"),
        &format!("tls-cert-file {}", file("server.pem")),
        &format!("tls-key-file {}", file("server-key.pem")),
        &format!("tls-ca-cert-file {}", file("authority.pem")),
        "tls-auth-clients no",
    ]);
    (server, format!("rediss://localhost:{port}"))
}

#[test]
fn is_spoken_with_a_server_that_is_trusted() {
    let (server, url) = server();
    // What a process trusts is its environment's to say, which no test may change in its own.
    let again = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "tls::in_a_process_that_trusts_it", "--nocapture"])
        .env("SSL_CERT_FILE", file("authority.pem"))
        .env(URL, url)
        .output()
        .expect("this test again");
    let printed = String::from_utf8_lossy(&again.stdout);
    assert!(
        again.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
    assert!(!server.cli(&["KEYS", "*"]).is_empty(), "nothing was stored");
}

/// Does nothing unless it is started by the test above.
#[tokio::test]
async fn in_a_process_that_trusts_it() {
    let Ok(url) = env::var(URL) else { return };
    let store = store_at(&url).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let token = Token::unique();
    client.claim(claim(token)).await.expect("a claim");
    client
        .complete(token, record(100_000))
        .await
        .expect("a completion");
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("a record");
    assert_eq!(found, ClaimOutcome::Completed(record(100_000)));
}

#[tokio::test]
async fn is_not_spoken_with_another() {
    let (_server, url) = server();
    let error = RedisStore::connect(&url, NAMESPACE)
        .await
        .expect_err("nobody vouches for it");
    assert_eq!(error.kind(), ErrorKind::Store, "{error}");
}
