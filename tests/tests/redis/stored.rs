//! What stands at a key can be read by hand, and ends when it should.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use idempotent_runtime::store::{Claim, ClaimOutcome, CompleteOutcome, Record, RecordBody, Token};
use idempotent_tests::{
    redis::RedisServer,
    store::{claim, fingerprint, key, record},
};

use super::bench::{Client, keys, store, stored};

#[tokio::test]
async fn can_be_read_by_hand() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let name = stored(&client.key);
    let token = Token::from_bytes([0xab; 16]);
    client.claim(claim(token)).await.expect("a claim");
    let (token_digits, digest) = ("ab".repeat(16), "07".repeat(32));
    assert_eq!(
        server.cli(&["GET", &name]),
        format!("IDP1P {token_digits} 01:{digest} 000000000000\n")
    );

    let headers = [
        (
            HeaderName::from_static("location"),
            HeaderValue::from_static("/orders/7"),
        ),
        (
            HeaderName::from_static("x-name"),
            HeaderValue::from_bytes(b"caf\xe9").expect("a value"),
        ),
        (
            HeaderName::from_static("x-name"),
            HeaderValue::from_static("a \"b\" \t\\"),
        ),
        (
            HeaderName::from_static("x-utf8"),
            HeaderValue::from_bytes("é".as_bytes()).expect("a value"),
        ),
    ];
    let body = RecordBody::Stored(Bytes::from_static(b"{\"id\":7}\n\xff"));
    let record = Arc::new(Record::new(
        fingerprint(),
        StatusCode::CREATED,
        headers,
        body,
    ));
    client
        .complete(token, Arc::clone(&record))
        .await
        .expect("a completion");
    let text = server.cli(&["GET", &name]);
    let mut lines = text.lines();
    let first = format!("IDP1C {token_digits} 01:{digest} 000000000000");
    assert_eq!(lines.next(), Some(&*first));
    assert_eq!(
        lines.next(),
        Some(
            r#"{"status":201,"headers":[["location","/orders/7"],["x-name","café"],["x-name","a \"b\" \t\\"],["x-utf8","é"]],"latin1":[1],"body":10}"#
        )
    );
    assert_eq!(lines.next(), Some("{\"id\":7}"));
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("a record");
    assert_eq!(found, ClaimOutcome::Completed(record));
    assert_eq!(keys(&server).len(), 1);
}

#[tokio::test]
async fn ends_when_it_should() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let week = Duration::from_hours(168);
    for (n, retention, least, most) in [
        (1, week, 604_700_000, 604_800_000),
        (2, Duration::from_secs(5), 4_000, 5_000),
        (3, Duration::MAX, 1 << 40, 1 << 42),
    ] {
        let client = Client {
            store: &store,
            key: key(n),
        };
        let token = Token::unique();
        client.claim(claim(token)).await.expect("a claim");
        let completed = client.complete_for(token, record(1), retention).await;
        assert_eq!(completed.expect("a completion"), CompleteOutcome::Stored);
        let left: i64 = server
            .cli(&["PTTL", &stored(&client.key)])
            .parse()
            .expect("a number");
        assert!(
            (least..=most).contains(&left),
            "{retention:?}: {left} ms left"
        );
    }
    for retention in [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(999),
    ] {
        let client = Client {
            store: &store,
            key: key(4),
        };
        let token = Token::unique();
        let completed = client.complete_for(token, record(1), retention).await;
        assert_eq!(completed.expect("a completion"), CompleteOutcome::Stored);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let found = client.claim(claim(token)).await.expect("nothing stands");
        assert_eq!(found, ClaimOutcome::Claimed);
        client.release(token).await.expect("a release");
    }
    for (lease, kept) in [
        (Duration::ZERO, Duration::ZERO),
        (Duration::MAX, Duration::MAX),
        (Duration::from_nanos(1), week),
    ] {
        let client = Client {
            store: &store,
            key: key(5),
        };
        let claim = Claim::new(Token::unique(), fingerprint(), lease).kept(kept);
        client.claim(claim).await.expect("a claim");
        client.renew(claim).await.expect("a renewal");
        client.release(claim.token).await.expect("a release");
    }
}

#[tokio::test]
async fn a_kept_claim_lapses_and_stays() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let client = Client {
        store: &store,
        key: key(1),
    };
    let (lease, kept) = (Duration::from_millis(300), Duration::from_hours(1));
    let held = Claim::new(Token::unique(), fingerprint(), lease).kept(kept);
    client.claim(held).await.expect("a claim");
    let left = async || {
        let found = client.claim(claim(Token::unique())).await.expect("a claim");
        let ClaimOutcome::InProgress { lease_left, .. } = found else {
            panic!("{found:?}");
        };
        lease_left.expect("a lease")
    };
    let first = left().await;
    assert!(
        first <= lease && first > Duration::from_millis(100),
        "{first:?}"
    );
    tokio::time::sleep(first + Duration::from_millis(5)).await;
    let found = client.claim(claim(Token::unique())).await.expect("a claim");
    let lapsed = ClaimOutcome::Lapsed {
        fingerprint: fingerprint(),
    };
    assert_eq!(found, lapsed);
    client.renew(held).await.expect("a renewal");
    assert!(left().await <= lease);
}

#[tokio::test]
async fn bodies_of_every_size_come_back() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for (n, size) in [(0, 0), (1, 1), (2, 65_536), (3, 3 << 20)] {
        let client = Client {
            store: &store,
            key: key(n),
        };
        client
            .complete(Token::unique(), record(size))
            .await
            .expect("a completion");
        let found = client
            .claim(claim(Token::unique()))
            .await
            .expect("a record");
        assert_eq!(found, ClaimOutcome::Completed(record(size)), "{size} bytes");
    }
    let gone = Arc::new(Record::new(
        fingerprint(),
        StatusCode::OK,
        [],
        RecordBody::Unreplayable,
    ));
    let client = Client {
        store: &store,
        key: key(4),
    };
    client
        .complete(Token::unique(), Arc::clone(&gone))
        .await
        .expect("a completion");
    let found = client
        .claim(claim(Token::unique()))
        .await
        .expect("a record");
    assert_eq!(found, ClaimOutcome::Completed(gone));
}
