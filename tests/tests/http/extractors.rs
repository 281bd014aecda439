//! The handler's own extractors, which see the whole request.

use axum::{
    Extension, Form, Json, RequestExt, Router,
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, FromRequest, OriginalUri, Path, RawForm, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::idempotent;
use idempotent_tests::http::{Embedded, chunked, keyed, post as post_to, send};
use serde::{Deserialize, Serialize};

const MIB: usize = 1024 * 1024;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    n: u32,
}

/// An extractor of the user's own that looks at the whole request.
struct Validated(Order, String);

impl<S: Send + Sync> FromRequest<S> for Validated {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let note = request
            .extensions()
            .get::<Note>()
            .map(|note| note.0.clone())
            .unwrap_or_default();
        let Json(order) = Json::<Order>::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        if order.n == 0 {
            return Err((StatusCode::UNPROCESSABLE_ENTITY, "n is zero").into_response());
        }
        Ok(Self(order, note))
    }
}

/// One that reads the body in a task of its own.
struct Elsewhere(usize);

impl<S: Send + Sync> FromRequest<S> for Elsewhere {
    type Rejection = StatusCode;

    async fn from_request(request: Request, _: &S) -> Result<Self, StatusCode> {
        let read = tokio::spawn(to_bytes(request.into_body(), 8 * MIB));
        read.await
            .unwrap()
            .map(|bytes| Self(bytes.len()))
            .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)
    }
}

/// One that reads only the beginning.
struct Peek(Vec<u8>);

impl<S: Send + Sync> FromRequest<S> for Peek {
    type Rejection = StatusCode;

    async fn from_request(request: Request, _: &S) -> Result<Self, StatusCode> {
        use http_body_util::BodyExt;
        let mut body = request.with_limited_body().into_body();
        let first = body
            .frame()
            .await
            .ok_or(StatusCode::BAD_REQUEST)?
            .map_err(|_| StatusCode::BAD_REQUEST)?;
        Ok(Self(
            first
                .into_data()
                .map_err(|_| StatusCode::BAD_REQUEST)?
                .to_vec(),
        ))
    }
}

#[derive(Clone)]
struct Note(String);

#[idempotent]
async fn bytes(
    Extension(note): Extension<Note>,
    OriginalUri(uri): OriginalUri,
    body: Bytes,
) -> String {
    format!("{} {uri} {body:?}", note.0)
}

#[idempotent]
async fn string(ConnectInfo(peer): ConnectInfo<u8>, body: String) -> String {
    format!("{peer} {body}")
}

#[idempotent]
async fn urlencoded(Path(id): Path<u32>, Form(order): Form<Order>) -> String {
    format!("{id} {}", order.n)
}

#[idempotent]
async fn raw_form(RawForm(form): RawForm) -> Bytes {
    form
}

#[idempotent]
async fn validated(Validated(order, note): Validated) -> String {
    format!("{} {note}", order.n)
}

#[idempotent]
async fn elsewhere(Elsewhere(read): Elsewhere) -> String {
    read.to_string()
}

#[idempotent]
async fn peek(Peek(first): Peek) -> String {
    String::from_utf8(first).unwrap()
}

#[idempotent]
async fn optional(order: Result<Json<Order>, axum::extract::rejection::JsonRejection>) -> String {
    order.is_ok().to_string()
}

#[idempotent]
async fn whole(request: Request) -> Response {
    let note = request
        .extensions()
        .get::<Note>()
        .map(|note| note.0.clone())
        .unwrap_or_default();
    let uri = request.uri().to_string();
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
    format!("{note} {uri} {}", body.len()).into_response()
}

#[tokio::test]
async fn b137_every_extractor_sees_the_whole_request() {
    let router = Router::new()
        .route("/bytes", post(bytes))
        .route("/string", post(string))
        .route("/urlencoded/{id}", post(urlencoded))
        .route("/raw_form", post(raw_form))
        .route("/validated", post(validated))
        .route("/elsewhere", post(elsewhere))
        .route("/peek", post(peek))
        .route("/optional", post(optional))
        .nest("/nested", Router::new().route("/whole", post(whole)))
        .layer(axum::extract::connect_info::MockConnectInfo(7_u8))
        .layer(Extension(Note("note".to_owned())));
    let app = Embedded::shared().on(router);
    let order = r#"{"n":5}"#;
    let long = "x".repeat(100_000);
    let cases = [
        (
            "/bytes",
            "application/json",
            order,
            r#"note /bytes b"{\"n\":5}""#,
        ),
        ("/string", "text/plain", "text", "7 text"),
        (
            "/urlencoded/3",
            "application/x-www-form-urlencoded",
            "n=4",
            "3 4",
        ),
        (
            "/raw_form",
            "application/x-www-form-urlencoded",
            "n=4&m",
            "n=4&m",
        ),
        ("/validated", "application/json", order, "5 note"),
        ("/optional", "application/json", order, "true"),
        ("/optional", "application/json", "{", "false"),
        ("/elsewhere", "text/plain", &long, "100000"),
        ("/peek", "text/plain", "abc", "abc"),
        ("/nested/whole", "text/plain", &long, "note /whole 100000"),
    ];
    for (n, (path, content_type, body, answer)) in cases.into_iter().enumerate() {
        for known in [true, false] {
            let request = |key: Option<String>| {
                let body = if known {
                    Body::from(body.to_owned())
                } else {
                    chunked(body.to_owned())
                };
                let mut request = post_to(path).header("content-type", content_type);
                if let Some(key) = key {
                    request = request.header("idempotency-key", key);
                }
                request.body(body).unwrap()
            };
            assert_eq!(
                send(&app, request(None)).await.text(),
                answer,
                "{path}: without a key"
            );
            let key = Some(format!("{n}{known}"));
            let first = send(&app, request(key.clone())).await;
            assert_eq!(
                (first.outcome(), first.text().as_str()),
                ((200, false), answer),
                "{path}: with a key"
            );
            let again = send(&app, request(key)).await;
            assert_eq!(
                (again.outcome(), again.text().as_str()),
                ((200, true), answer),
                "{path}: again"
            );
        }
    }
    let refused = send(&app, keyed("/validated", "zero", r#"{"n":0}"#)).await;
    assert_eq!(
        (refused.status.as_u16(), refused.text().as_str()),
        (422, "n is zero")
    );
}
