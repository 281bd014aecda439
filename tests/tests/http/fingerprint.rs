//! What makes two requests the same.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Multipart, Request, State},
    routing::post,
};
use idempotent_runtime::idempotent;
use idempotent_tests::http::{Embedded, Runs, hang_up, keyed, post as post_to, send};

#[idempotent]
async fn create(State(runs): State<Runs>, body: Bytes) -> String {
    format!("{} {}", runs.add(), body.len())
}

#[idempotent(ignore("/sentAt", "/meta/attempt"))]
async fn lenient(State(runs): State<Runs>, body: String) -> String {
    format!("{} {body}", runs.add())
}

#[idempotent]
async fn slow(State(runs): State<Runs>, body: String) -> String {
    tokio::time::sleep(Duration::from_secs(3)).await;
    format!("{} {body}", runs.add())
}

#[idempotent]
async fn form(State(runs): State<Runs>, mut form: Multipart) -> String {
    let mut text = runs.add().to_string();
    while let Some(field) = form.next_field().await.unwrap() {
        text += &field.text().await.unwrap();
    }
    text
}

#[idempotent]
async fn close(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

fn app() -> (Router, Runs) {
    let runs = Runs::default();
    let router = Router::new()
        .route("/", post(create))
        .route("/lenient", post(lenient))
        .route("/slow", post(slow))
        .route("/form", post(form))
        .route("/tickets/{id}/close", post(close))
        .with_state(runs.clone());
    (Embedded::shared().on(router), runs)
}

#[tokio::test]
async fn b041_every_found_record_is_compared() {
    let (app, runs) = app();
    send(&app, keyed("/", "k", r#"{"amount":10}"#)).await;
    for _ in 0..2 {
        let other = send(&app, keyed("/", "k", r#"{"amount":99}"#)).await;
        assert_eq!(
            (other.outcome(), other.problem().as_str()),
            ((422, false), "urn:idempotency:key-reused")
        );
    }
    assert!(
        send(&app, keyed("/", "k", r#"{"amount":10}"#))
            .await
            .is_replay()
    );
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn b042_equal_bodies_of_all_sizes_and_shapes_are_equal() {
    let (app, runs) = app();
    let bodies: [Vec<u8>; 5] = [
        vec![],
        vec![7],
        vec![1; 65_536],
        vec![2; 65_537],
        vec![3; 1024 * 1024],
    ];
    let mut sent = 0;
    for (n, body) in bodies.iter().enumerate() {
        // with and without a known length, in chunks of another size each time
        for chunk in [0, 1000, 7777] {
            let request = || {
                let body = if chunk == 0 {
                    Body::from(body.clone())
                } else {
                    chunked(body, chunk)
                };
                keyed("/", &format!("k{n}-{chunk}"), body)
            };
            let first = send(&app, request()).await;
            sent += 1;
            assert_eq!(
                (first.outcome(), first.text()),
                ((200, false), format!("{sent} {}", body.len()))
            );
            assert!(
                send(&app, request()).await.is_replay(),
                "{} bytes by {chunk}",
                body.len()
            );
            assert!(
                send(&app, keyed("/", &format!("k{n}-{chunk}"), body.clone()))
                    .await
                    .is_replay()
            );
        }
    }
    assert_eq!(runs.count(), 15);
}

fn chunked(body: &[u8], size: usize) -> Body {
    let chunks: Vec<Result<Bytes, std::io::Error>> = body
        .chunks(size)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    Body::from_stream(futures_util::stream::iter(chunks))
}

#[tokio::test]
async fn b043_bytes_are_compared_not_json() {
    let (app, runs) = app();
    send(&app, keyed("/", "k", r#"{"a":1,"b":2}"#)).await;
    for other in [
        r#"{"b":2,"a":1}"#,
        r#"{"a":1, "b":2}"#,
        r#"{"a":1,"b":2}"#.trim_end_matches('}'),
    ] {
        assert_eq!(
            send(&app, keyed("/", "k", other)).await.status,
            422,
            "{other}"
        );
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn ignored_members_may_change_between_attempts() {
    let (app, runs) = app();
    let first = send(
        &app,
        keyed(
            "/lenient",
            "k",
            r#"{"a":1,"sentAt":"09:00","meta":{"attempt":1,"b":2}}"#,
        ),
    )
    .await;
    let again = send(
        &app,
        keyed(
            "/lenient",
            "k",
            r#"{"meta":{"b":2,"attempt":2}, "sentAt":"09:01", "a":1}"#,
        ),
    )
    .await;
    assert!(again.is_replay() && again.body == first.body);
    for other in [
        r#"{"a":2,"meta":{"b":2}}"#,
        r#"{"a":1,"meta":{"b":3}}"#,
        r#"{"a":1}"#,
    ] {
        assert_eq!(
            send(&app, keyed("/lenient", "k", other)).await.status,
            422,
            "{other}"
        );
    }
    // what is no JSON is compared by its bytes
    assert!(
        !send(&app, keyed("/lenient", "text", "{a"))
            .await
            .is_replay()
    );
    assert!(
        send(&app, keyed("/lenient", "text", "{a"))
            .await
            .is_replay()
    );
    for (key, other) in [("text", "{b"), ("text", "{}"), ("k", "{")] {
        assert_eq!(send(&app, keyed("/lenient", key, other)).await.status, 422);
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn b044_a_refused_duplicate_leaves_the_owner_alone() {
    let (app, runs) = app();
    let first = tokio::spawn({
        let app = app.clone();
        async move { send(&app, keyed("/slow", "k", "mine")).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = tokio::time::Instant::now();
    assert_eq!(send(&app, keyed("/slow", "k", "other")).await.status, 422);
    assert!(
        began.elapsed() < Duration::from_millis(100),
        "at once, although the first still runs"
    );
    hang_up(
        &app,
        keyed("/slow", "k", "mine"),
        Duration::from_millis(500),
    )
    .await;
    let first = first.await.unwrap();
    assert_eq!(first.outcome(), (200, false));
    for _ in 0..2 {
        assert_eq!(send(&app, keyed("/slow", "k", "other")).await.status, 422);
        let again = send(&app, keyed("/slow", "k", "mine")).await;
        assert!(again.is_replay() && again.body == first.body);
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn path_and_query_are_part_of_the_request() {
    let (app, runs) = app();
    assert_eq!(
        send(&app, keyed("/tickets/1/close", "k", ""))
            .await
            .outcome(),
        (200, false)
    );
    assert_eq!(
        send(&app, keyed("/tickets/2/close", "k", "")).await.status,
        422
    );
    assert_eq!(
        send(&app, keyed("/tickets/1/close?now", "k", ""))
            .await
            .status,
        422
    );
    assert!(
        send(&app, keyed("/tickets/1/close", "k", ""))
            .await
            .is_replay()
    );
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_form_is_the_same_under_another_boundary() {
    let (app, runs) = app();
    let form = |boundary: &str, value: &str| {
        let body = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{value}\r\n--{boundary}--\r\n"
        );
        post_to("/form")
            .header("idempotency-key", "k")
            .header(
                "content-type",
                format!("multipart/form-data; boundary={boundary}"),
            )
            .body(Body::from(body))
            .unwrap()
    };
    let first = send(&app, form("one", "x")).await;
    assert_eq!(
        (first.outcome(), first.text().as_str()),
        ((200, false), "1x")
    );
    assert!(send(&app, form("two", "x")).await.is_replay());
    assert_eq!(send(&app, form("three", "y")).await.status, 422);
    assert_eq!(runs.count(), 1);
}

#[idempotent]
async fn raw(State(runs): State<Runs>, request: Request) -> String {
    let encoding = request.headers()["content-encoding"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX)
        .await
        .unwrap();
    format!("{} {encoding} {body:?}", runs.add())
}

#[tokio::test]
async fn encoded_bodies_are_compared_as_they_were_sent() {
    let runs = Runs::default();
    let app = Embedded::shared().on(Router::new().route("/", post(raw)).with_state(runs.clone()));
    let request = || {
        let mut request = keyed("/", "k", vec![0x1f, 0x8b, 0x08, 0x00, 0xff]);
        request
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        request
    };
    let first = send(&app, request()).await;
    assert!(first.text().contains("gzip"));
    let again = send(&app, request()).await;
    assert!(again.is_replay() && again.body == first.body);
    assert_eq!(runs.count(), 1);
}
