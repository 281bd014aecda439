//! K09: what is stored, and what comes back.

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderValue, Response, StatusCode, header},
    routing::post,
};
use idempotent_runtime::idempotent;
use idempotent_tests::{fleet::Fleet, http::Runs};

/// Answers the status that the body names.
#[idempotent]
async fn answers(State(runs): State<Runs>, status: String) -> StatusCode {
    let _ = runs.add();
    let status = status.parse().unwrap_or(500);
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[tokio::test(flavor = "multi_thread")]
async fn b048_b052_successes_come_back_as_they_were_and_nothing_else_does() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(answers));
        routes.with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    for status in [200, 201, 202, 204, 206] {
        let (key, body) = (format!("k{status}"), status.to_string());
        let first = one.send("/", &key, &body).await;
        let again = two.send("/", &key, &body).await;
        assert_eq!(
            (first.outcome(), again.outcome()),
            ((status, false), (status, true))
        );
        assert!(again.body.is_empty());
    }
    assert_eq!(one.send("/", "otp", "400").await.outcome(), (400, false));
    assert_eq!(two.send("/", "otp", "200").await.outcome(), (200, false));
    assert_eq!(one.send("/", "otp", "200").await.outcome(), (200, true));
}

#[idempotent]
async fn picture(State(runs): State<Runs>, _body: String) -> Response<Body> {
    let _ = runs.add();
    let bytes = [0x00, 0xff, 0xfe, 0x80, 0x0d, 0x0a].repeat(1707);
    let odd = HeaderValue::from_bytes(b"caf\xe9").unwrap();
    Response::builder()
        .status(StatusCode::CREATED)
        .header(header::CONTENT_TYPE, "image/png")
        .header(header::LOCATION, "/pictures/1")
        .header(header::ETAG, "\"e\"")
        .header(header::LINK, "</a>; rel=a")
        .header(header::LINK, "</b>; rel=b")
        .header(header::CONTENT_LANGUAGE, "de")
        .header(header::SET_COOKIE, "session=1")
        .header("x-odd", odd)
        .body(Body::from(bytes))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn b050_b053_every_byte_and_header_comes_back() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(picture));
        routes.with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    let mut first = one.send("/", "k", "").await;
    let mut again = two.send("/", "k", "").await;
    assert_eq!((first.body.len(), runs.count()), (10_242, 1));
    assert!(again.headers.remove("x-idempotent-replay").is_some());
    assert!(first.headers.remove("set-cookie").is_some());
    assert_eq!(first, again);
}

#[idempotent]
async fn endless(State(runs): State<Runs>, _body: String) -> Response<Body> {
    let _ = runs.add();
    let chunks = (0..5).map(|n| Ok::<_, std::io::Error>(format!("chunk {n}\n")));
    Response::new(Body::from_stream(futures_util::stream::iter(chunks)))
}

/// A stream reaches its first client in full, and runs no second time.
#[tokio::test(flavor = "multi_thread")]
async fn b051_a_stream_leaves_a_note() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(endless));
        routes.with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    assert_eq!(one.send("/", "k", "").await.text().lines().count(), 5);
    for member in [&one, &two] {
        let again = member.send("/", "k", "").await;
        assert_eq!(again.problem(), "urn:idempotency:response-unavailable");
    }
    assert_eq!(runs.count(), 1);
}
