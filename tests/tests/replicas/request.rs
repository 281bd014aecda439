//! K05, K06 and K08: whose key it is, who may see a replay, and which request it was.

use axum::{
    Router,
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{StatusCode, request::Parts},
    routing::{post, put},
};
use idempotent_runtime::idempotent;
use idempotent_tests::{
    fleet::Fleet,
    http::{Runs, chunked, keyed, post as request, send},
};
use tokio::time::{Instant, sleep_until};

use super::{millis, work, works};

#[tokio::test(flavor = "multi_thread")]
async fn b028_b029_b030_route_method_and_caller_are_part_of_the_key() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new()
            .route("/v1/orders", post(work).put(work))
            .route("/v2/orders", post(work))
            .route("/refunds", put(work));
        routes.with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    let requests = || {
        let mut requests = Vec::new();
        for (method, path) in [
            ("POST", "/v1/orders"),
            ("PUT", "/v1/orders"),
            ("POST", "/v2/orders"),
            ("PUT", "/refunds"),
        ] {
            for caller in ["Bearer a", "Bearer b"] {
                let request = Request::builder().method(method).uri(path);
                let request = request
                    .header("authorization", caller)
                    .header("idempotency-key", "k");
                requests.push(request.body(Body::from("0")).unwrap());
            }
        }
        requests
    };
    let mut first = Vec::new();
    for request in requests() {
        let reply = send(&one.app, request).await;
        assert_eq!(reply.outcome(), (201, false));
        first.push(reply.body);
    }
    assert_eq!(runs.count(), 8);
    for (request, body) in requests().into_iter().zip(first) {
        let reply = send(&two.app, request).await;
        assert_eq!((reply.outcome(), reply.body), ((201, true), body));
    }
    assert_eq!(runs.count(), 8);
}

/// Rejects whom the header says to.
struct Admitted;

impl<S: Sync> FromRequestParts<S> for Admitted {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let revoked = parts.headers.contains_key("x-revoked");
        if revoked {
            Err(StatusCode::FORBIDDEN)
        } else {
            Ok(Self)
        }
    }
}

#[idempotent]
async fn admitted(_: Admitted, State(runs): State<Runs>, _body: String) -> String {
    format!("secret {}", runs.add())
}

#[tokio::test(flavor = "multi_thread")]
async fn b035_whom_the_extractors_reject_sees_no_replay() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = Router::new().route("/", post(admitted));
    let one = fleet.member(routes.with_state(runs.clone())).await;
    assert_eq!(one.send("/", "k", "").await.outcome(), (200, false));
    let mut revoked = keyed("/", "k", "");
    revoked
        .headers_mut()
        .insert("x-revoked", "1".parse().unwrap());
    let refused = send(&one.app, revoked).await;
    assert_eq!(
        (refused.status.as_u16(), refused.text().as_str()),
        (403, "")
    );
    assert_eq!(one.send("/", "k", "").await.outcome(), (200, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn b041_b043_another_body_is_refused_everywhere() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let json = r#"{"a":1,"b":2}"#;
    assert_eq!(one.send("/", "k", json).await.outcome(), (201, false));
    let three = fleet.member(works(&runs)).await;
    for member in [&one, &two, &three] {
        for other in [r#"{"b":2,"a":1}"#, r#"{"a":1, "b":2}"#, r#"{"a":99}"#] {
            let reply = member.send("/", "k", other).await;
            assert_eq!(reply.problem(), "urn:idempotency:key-reused");
            assert!(!reply.is_replay());
        }
        assert_eq!(member.send("/", "k", json).await.outcome(), (201, true));
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b042_equal_bodies_of_any_kind_are_equal_elsewhere() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let large = vec![b'7'; 1024 * 1024];
    let requests: Vec<Box<dyn Fn() -> Request>> = vec![
        Box::new(|| keyed("/", "empty", "")),
        Box::new(|| keyed("/", "one", "0")),
        Box::new(|| keyed("/", "large", large.clone())),
        Box::new(|| keyed("/", "chunked", chunked(large.clone()))),
        Box::new(|| {
            let request = request("/").header("idempotency-key", "gzip");
            let request = request.header("content-encoding", "gzip");
            request.body(Body::from("0")).unwrap()
        }),
    ];
    for (n, request) in requests.iter().enumerate() {
        assert_eq!(send(&one.app, request()).await.outcome(), (201, false));
        assert_eq!(
            send(&two.app, request()).await.outcome(),
            (201, true),
            "{n}"
        );
    }
    assert_eq!(runs.count(), requests.len());
}

/// Another body and a duplicate that hangs up, while the first request runs.
#[tokio::test(flavor = "multi_thread")]
async fn b044_whoever_is_refused_changes_nothing_for_the_holder() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let began = Instant::now();
    let at = async |ms| sleep_until(began + millis(ms)).await;
    let first = one.spawn("/", "k", "1500");
    at(200).await;
    for member in [&one, &two] {
        let asked = Instant::now();
        let other = member.send("/", "k", "9").await;
        assert_eq!(other.problem(), "urn:idempotency:key-reused");
        assert!(asked.elapsed() < millis(300), "{:?}", asked.elapsed());
    }
    let leaving = [one.spawn("/", "k", "1500"), two.spawn("/", "k", "1500")];
    at(700).await;
    leaving.iter().for_each(tokio::task::JoinHandle::abort);
    let first = first.await.unwrap();
    assert_eq!(first.outcome(), (201, false));
    for member in [&one, &two] {
        let again = member.send("/", "k", "1500").await;
        assert_eq!((again.outcome(), &again.body), ((201, true), &first.body));
        let other = member.send("/", "k", "9").await;
        assert_eq!(other.problem(), "urn:idempotency:key-reused");
    }
    assert_eq!(runs.count(), 1);
}
