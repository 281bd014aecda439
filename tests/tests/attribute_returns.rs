//! `#[idempotent]` on every return type that can be replayed.

use std::fmt;

use axum::{
    Json, Router,
    body::Bytes,
    extract::Request,
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::idempotent;
use idempotent_tests::replay::{Answer, Post, protected};

async fn answer(router: Router, body: &str) -> Answer {
    Post::json("/h", body)
        .runs_and_replays(&protected(router))
        .await
}

macro_rules! answers {
    ($handler:expr, $body:expr => $status:literal $text:expr) => {{
        let answer = answer(Router::new().route("/h", post($handler)), $body).await;
        assert_eq!((answer.status, answer.body.as_str()), ($status, $text));
    }};
}

#[tokio::test]
async fn plain_types() {
    #[idempotent]
    async fn nothing() {}
    #[idempotent]
    async fn status() -> StatusCode {
        StatusCode::NO_CONTENT
    }
    #[idempotent]
    async fn html() -> Html<&'static str> {
        Html("<p>")
    }
    #[idempotent]
    async fn bytes() -> Bytes {
        Bytes::from_static(b"bytes")
    }
    #[idempotent]
    async fn array() -> [u8; 2] {
        *b"ab"
    }
    #[idempotent]
    async fn tuple() -> (
        StatusCode,
        [(header::HeaderName, &'static str); 1],
        Json<u8>,
    ) {
        (
            StatusCode::ACCEPTED,
            [(header::LOCATION, "/orders/1")],
            Json(1),
        )
    }
    #[idempotent]
    async fn response(request: Request) -> Response {
        request.uri().to_string().into_response()
    }
    answers!(nothing, "" => 200 "");
    answers!(status, "" => 204 "");
    answers!(html, "" => 200 "<p>");
    answers!(bytes, "" => 200 "bytes");
    answers!(array, "" => 200 "ab");
    answers!(tuple, "" => 202 "1");
    answers!(response, "" => 200 "/h");
}

#[tokio::test]
async fn types_written_in_other_ways() {
    macro_rules! json {
        ($ty:ty) => { Json<$ty> };
    }
    #[idempotent]
    async fn by_macro(body: json!(Vec<u8>)) -> json!(Vec<u8>) {
        body
    }
    #[idempotent]
    async fn by_expression() -> [u8; 1 + 1] {
        *b"ab"
    }
    #[idempotent]
    async fn both_opaque(body: String) -> Result<impl IntoResponse, impl IntoResponse> {
        if body.is_empty() {
            Err(StatusCode::CONFLICT)
        } else {
            Ok(body)
        }
    }
    #[idempotent]
    async fn more_bounds(body: String) -> impl IntoResponse + Send + 'static {
        body
    }
    #[idempotent]
    async fn axums_result(body: String) -> axum::response::Result<(StatusCode, String)> {
        if body.is_empty() {
            Err(StatusCode::CONFLICT)?;
        }
        Ok((StatusCode::CREATED, body))
    }
    #[idempotent]
    async fn qualified(body: String) -> <String as ToOwned>::Owned {
        body
    }
    answers!(by_macro, "[1]" => 200 "[1]");
    answers!(by_expression, "" => 200 "ab");
    answers!(both_opaque, "a" => 200 "a");
    answers!(more_bounds, "a" => 200 "a");
    answers!(axums_result, "a" => 201 "a");
    answers!(qualified, "a" => 200 "a");
}

#[derive(Debug)]
struct AppError(StatusCode);

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<std::num::ParseIntError> for AppError {
    fn from(_: std::num::ParseIntError) -> Self {
        Self(StatusCode::BAD_REQUEST)
    }
}

impl From<fmt::Error> for AppError {
    fn from(_: fmt::Error) -> Self {
        Self(StatusCode::CONFLICT)
    }
}

#[tokio::test]
async fn b112_impl_trait() {
    #[idempotent]
    async fn in_result() -> Result<impl IntoResponse, AppError> {
        Ok((StatusCode::CREATED, "x"))
    }
    #[idempotent]
    async fn alone() -> impl IntoResponse {
        (StatusCode::CREATED, "x")
    }
    #[idempotent]
    async fn in_tuple() -> (StatusCode, impl IntoResponse) {
        (StatusCode::CREATED, "x")
    }
    #[idempotent]
    async fn early(body: String) -> impl IntoResponse {
        if body == "no" {
            return Err(StatusCode::CONFLICT);
        }
        let n: u32 = body.parse().map_err(|_| StatusCode::BAD_REQUEST)?;
        Ok(n.to_string())
    }
    #[idempotent]
    async fn capturing<T: ToString + From<String> + Send + 'static>(
        body: String,
    ) -> impl IntoResponse + use<T> {
        T::from(body).to_string()
    }
    #[idempotent]
    async fn looping(mut body: String) -> impl IntoResponse {
        loop {
            body.push('!');
            if body.len() > 2 {
                break body;
            }
        }
    }
    answers!(in_result, "" => 201 "x");
    answers!(alone, "" => 201 "x");
    answers!(in_tuple, "" => 201 "x");
    answers!(early, "7" => 200 "7");
    answers!(capturing::<String>, "use" => 200 "use");
    answers!(looping, "a" => 200 "a!!");
    let router = protected(Router::new().route("/h", post(early)));
    assert_eq!(
        Post::json("/h", "no")
            .send(&router, Some("early"))
            .await
            .status,
        409
    );
}

#[tokio::test]
async fn b116_early_return() {
    #[idempotent]
    async fn h(body: String) -> Result<StatusCode, AppError> {
        use std::fmt::Write as _;
        let mut out = String::new();
        let Some(first) = body.chars().next() else {
            return Err(AppError(StatusCode::UNPROCESSABLE_ENTITY));
        };
        for c in body.chars() {
            if c == 'c' {
                return Ok(StatusCode::CREATED);
            }
            write!(out, "{c}")?;
        }
        let n: u8 = out.parse()?;
        Ok(if n == 1 && first == '1' {
            StatusCode::ACCEPTED
        } else {
            StatusCode::OK
        })
    }
    let router = protected(Router::new().route("/h", post(h)));
    for (body, status) in [("abc", 201), ("1", 202), ("2", 200)] {
        assert_eq!(
            Post::json("/h", body)
                .runs_and_replays(&router)
                .await
                .status,
            status,
            "{body}"
        );
    }
    for (body, status) in [("", 422), ("x", 400)] {
        for _ in 0..2 {
            let key = format!("b116-{status}");
            let answer = Post::json("/h", body).send(&router, Some(&key)).await;
            assert_eq!(
                (answer.status, answer.replayed),
                (status, false),
                "an error is released: {body}"
            );
        }
    }
}

trait Reply {
    fn text(&self) -> String;
}
struct Small;
impl Reply for Small {
    fn text(&self) -> String {
        "small".into()
    }
}
struct Big(u32);
impl Reply for Big {
    fn text(&self) -> String {
        format!("big {}", self.0)
    }
}
impl IntoResponse for Box<dyn Reply + Send> {
    fn into_response(self) -> Response {
        self.text().into_response()
    }
}

#[tokio::test]
async fn b142_boxed_trait_objects() {
    #[idempotent]
    async fn h(body: String) -> Result<Box<dyn Reply + Send>, AppError> {
        use std::fmt::Write as _;
        if body.is_empty() {
            return Ok(Box::new(Small));
        }
        let v = body.parse()?;
        write!(String::new(), "{v}")?;
        Ok(Box::new(Big(v)))
    }
    answers!(h, "" => 200 "small");
    answers!(h, "7" => 200 "big 7");
}
