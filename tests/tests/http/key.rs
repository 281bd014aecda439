//! Keys that are missing, malformed or spelt in two ways.

use axum::{Router, body::Body, extract::State, http::HeaderValue, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::http::{Embedded, Runs, keyed, post as post_to, send};

#[idempotent]
async fn create(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[idempotent(required)]
async fn strict(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

fn app(embedded: &Embedded) -> (Router, Runs) {
    let runs = Runs::default();
    let router = Router::new()
        .route("/", post(create))
        .route("/strict", post(strict))
        .with_state(runs.clone());
    (embedded.on(router), runs)
}

#[tokio::test]
async fn b037_no_key_is_not_the_key_nothing() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    for n in 1..=3 {
        let reply = send(&app, post_to("/").body(Body::empty()).unwrap()).await;
        assert_eq!(
            (reply.outcome(), reply.text()),
            ((200, false), n.to_string())
        );
    }
    assert_eq!(embedded.store.len(), 0);
    assert_eq!(
        send(&app, post_to("/strict").body(Body::empty()).unwrap())
            .await
            .status,
        400
    );
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn b038_blank_keys_are_refused() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    for blank in ["", "   ", "\t", "\"\"", "\"  \""] {
        let reply = send(&app, keyed("/", blank, "")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (400, "urn:idempotency:key-malformed"),
            "{blank:?}"
        );
    }
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
}

#[tokio::test]
async fn malformed_keys_are_refused_before_the_store_is_touched() {
    let embedded = Embedded::shared();
    let (app, runs) = app(&embedded);
    let long = "k".repeat(256);
    let bad: [&[u8]; 9] = [
        b"a, b",
        b"a,b",
        b"\"abc",
        b"\"a\" \"b\"",
        b"\"a\\n\"",
        b"k\xc3\xa9y",
        b"\"k\xff\"",
        b"a b",
        long.as_bytes(),
    ];
    for key in bad {
        let request = post_to("/").header("idempotency-key", HeaderValue::from_bytes(key).unwrap());
        let reply = send(&app, request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (400, "urn:idempotency:key-malformed"),
            "{key:?}"
        );
        assert!(
            reply.text().contains("`idempotency-key` header"),
            "{}",
            reply.text()
        );
    }
    let twice = post_to("/")
        .header("idempotency-key", "a")
        .header("idempotency-key", "a");
    assert_eq!(
        send(&app, twice.body(Body::empty()).unwrap())
            .await
            .problem(),
        "urn:idempotency:key-malformed"
    );
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
}

#[tokio::test]
async fn a_string_and_a_token_are_the_same_key() {
    let (app, runs) = app(&Embedded::shared());
    assert!(!send(&app, keyed("/", "abc", "")).await.is_replay());
    for same in ["\"abc\"", " abc ", "\"abc\";v=1", "abc;v=1"] {
        assert!(send(&app, keyed("/", same, "")).await.is_replay(), "{same}");
    }
    assert!(
        !send(&app, keyed("/", "ABC", "")).await.is_replay(),
        "keys are case-sensitive"
    );
    assert!(
        !send(&app, keyed("/", &"k".repeat(255), ""))
            .await
            .is_replay()
    );
    assert!(!send(&app, keyed("/", r#""a\"b\\c""#, "")).await.is_replay());
    assert_eq!(runs.count(), 4);
}
