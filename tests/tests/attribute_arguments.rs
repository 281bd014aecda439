//! `#[idempotent]` on every shape of argument that Axum takes.

use std::sync::Arc;

use axum::{
    Extension, Form, Json, Router,
    body::Bytes,
    extract::{
        FromRequest, MatchedPath, Multipart, OriginalUri, Path, Query, RawForm, Request, State,
        rejection::JsonRejection,
    },
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::idempotent;
use idempotent_tests::replay::{Post, protected};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[derive(Deserialize, Serialize, Clone, Debug)]
struct Body {
    n: u32,
}

const JSON: &str = r#"{"n":1}"#;

/// Routes one handler, sends `body` and checks the answer of the run and of its replay.
macro_rules! answers {
    ($handler:expr, $body:expr => $status:literal $text:expr) => {
        answers!($handler, "application/json", $body => $status $text)
    };
    ($handler:expr, $content_type:expr, $body:expr => $status:literal $text:expr) => {{
        let router = Router::new().route("/h", post($handler)).layer(Extension(7_u8));
        let answer = Post { path: "/h", content_type: $content_type, body: $body }.runs_and_replays(&protected(router)).await;
        assert_eq!((answer.status, answer.body.as_str()), ($status, $text));
    }};
}

#[tokio::test]
async fn no_arguments() {
    #[idempotent]
    async fn h() -> &'static str {
        "none"
    }
    answers!(h, "" => 200 "none");
}

#[tokio::test]
async fn b137_json() {
    #[idempotent]
    async fn h(Json(body): Json<Body>) -> (StatusCode, Json<Body>) {
        (StatusCode::CREATED, Json(body))
    }
    answers!(h, JSON => 201 JSON);
}

#[tokio::test]
async fn b137_form() {
    #[idempotent]
    async fn h(Form(body): Form<Body>) -> Json<Body> {
        Json(body)
    }
    answers!(h, "application/x-www-form-urlencoded", "n=1" => 200 JSON);
}

#[tokio::test]
async fn b137_raw_form() {
    #[idempotent]
    async fn h(RawForm(body): RawForm) -> Bytes {
        body
    }
    answers!(h, "application/x-www-form-urlencoded", "n=1" => 200 "n=1");
}

#[tokio::test]
async fn b137_bytes_and_string() {
    #[idempotent]
    async fn bytes(body: Bytes) -> Bytes {
        body
    }
    #[idempotent]
    async fn string(body: String) -> String {
        body
    }
    answers!(bytes, "abc" => 200 "abc");
    answers!(string, "abc" => 200 "abc");
}

#[tokio::test]
async fn b137_multipart() {
    #[idempotent]
    async fn h(mut form: Multipart) -> Result<String, StatusCode> {
        let mut names = String::new();
        while let Some(field) = form
            .next_field()
            .await
            .map_err(|_| StatusCode::BAD_REQUEST)?
        {
            names.push_str(field.name().unwrap_or("?"));
            names.push_str(&field.text().await.map_err(|_| StatusCode::BAD_REQUEST)?);
        }
        Ok(names)
    }
    let body = "--X\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--X--\r\n";
    answers!(h, "multipart/form-data; boundary=X", body => 200 "a1");
}

#[tokio::test]
async fn b137_request_extensions_and_uri() {
    #[idempotent]
    async fn h(
        Extension(seven): Extension<u8>,
        OriginalUri(uri): OriginalUri,
        matched: MatchedPath,
        request: Request,
    ) -> Result<String, StatusCode> {
        let also = request.extensions().get::<u8>().copied();
        let body = Bytes::from_request(request, &())
            .await
            .map_err(|_| StatusCode::BAD_REQUEST)?;
        Ok(format!(
            "{seven} {also:?} {uri} {} {}",
            matched.as_str(),
            body.len()
        ))
    }
    answers!(h, "abc" => 200 "7 Some(7) /h /h 3");
}

#[tokio::test]
async fn option_and_result() {
    #[idempotent]
    async fn option(body: Option<Json<Body>>) -> String {
        body.map_or(0, |Json(body)| body.n).to_string()
    }
    #[idempotent]
    async fn result(body: Result<Json<Body>, JsonRejection>) -> String {
        body.map_or(0, |Json(body)| body.n).to_string()
    }
    answers!(option, JSON => 200 "1");
    answers!(result, JSON => 200 "1");
    answers!(result, "{" => 200 "0");
}

struct Validated<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Validated<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        Json::from_request(request, state)
            .await
            .map(|Json(value)| Self(value))
            .map_err(IntoResponse::into_response)
    }
}

#[tokio::test]
async fn b137_an_extractor_of_the_users_own() {
    #[idempotent]
    async fn h(Validated(body): Validated<Body>) -> Json<Body> {
        Json(body)
    }
    answers!(h, JSON => 200 JSON);
}

#[tokio::test]
async fn a_last_argument_that_leaves_the_body_alone() {
    #[idempotent]
    async fn headers(headers: HeaderMap) -> String {
        headers.contains_key("authorization").to_string()
    }
    #[idempotent]
    async fn state(method: Method, State(()): State<()>) -> String {
        method.to_string()
    }
    #[idempotent]
    async fn unit(uri: Uri, (): ()) -> String {
        uri.to_string()
    }
    #[idempotent]
    async fn path(Path(id): Path<u32>) -> String {
        id.to_string()
    }
    answers!(headers, "" => 200 "true");
    answers!(state, "" => 200 "POST");
    answers!(unit, "" => 200 "/h");
    let router = protected(Router::new().route("/h/{id}", post(path)));
    assert_eq!(
        Post::json("/h/9", "").runs_and_replays(&router).await.body,
        "9"
    );
}

#[tokio::test]
async fn sixteen() {
    #[idempotent]
    #[expect(clippy::too_many_arguments, reason = "the most that Axum takes")]
    async fn h(
        _a: Method,
        _b: Method,
        _c: Method,
        _d: Method,
        _e: Method,
        _f: Method,
        _g: Method,
        _h: Method,
        _i: Method,
        _j: Method,
        _k: Method,
        _l: Method,
        _m: Method,
        _n: Method,
        _o: Method,
        p: String,
    ) -> String {
        p
    }
    answers!(h, "last" => 200 "last");
}

#[tokio::test]
async fn b113_mut_arguments() {
    #[idempotent]
    async fn h(mut headers: HeaderMap, Json(mut b): Json<Body>) -> Json<Body> {
        headers.clear();
        b.n += 1;
        Json(b)
    }
    #[idempotent]
    async fn last(mut body: String) -> String {
        let mut shout = || body.push('!');
        shout();
        body
    }
    answers!(h, JSON => 200 r#"{"n":2}"#);
    answers!(last, "a" => 200 "a!");
}

#[derive(Clone)]
struct App {
    db: Arc<str>,
    _other: u8,
}

#[derive(Deserialize)]
struct Q {
    a: u8,
    #[serde(default)]
    _b: u8,
}

#[tokio::test]
async fn b114_patterns() {
    #[idempotent]
    async fn h(
        Path((a, _)): Path<(u64, String)>,
        State(App { db, .. }): State<App>,
        Query(q @ Q { .. }): Query<Q>,
        _: HeaderMap,
        Json([x, y]): Json<[i32; 2]>,
    ) -> String {
        format!("{a} {db} {} {x} {y}", q.a)
    }
    let app = App {
        db: "db".into(),
        _other: 0,
    };
    let router = protected(Router::new().route("/{a}/{b}", post(h)).with_state(app));
    assert_eq!(
        Post::json("/1/b?a=2", "[3,4]")
            .runs_and_replays(&router)
            .await
            .body,
        "1 db 2 3 4"
    );
}

#[derive(Clone, Copy, Default)]
struct Unit;

#[tokio::test]
async fn b114_patterns_that_bind_nothing_or_many() {
    #[idempotent]
    async fn unit(
        Extension(Unit): Extension<Unit>,
        (m, u): (Method, Uri),
        Json((a, b)): Json<(u8, u8)>,
    ) -> String {
        format!("{m} {u} {a} {b}")
    }
    #[idempotent]
    async fn last(_: HeaderMap, _: String) -> &'static str {
        "last"
    }
    let router = Router::new().route("/h", post(unit)).layer(Extension(Unit));
    assert_eq!(
        Post::json("/h", "[1,2]")
            .runs_and_replays(&protected(router))
            .await
            .body,
        "POST /h 1 2"
    );
    answers!(last, "" => 200 "last");
}

#[tokio::test]
#[expect(
    clippy::type_complexity,
    clippy::too_many_lines,
    reason = "written out, not behind an alias"
)]
async fn a_type_that_takes_borrows_but_holds_none() {
    type Callback = Arc<dyn Fn(&str) -> String + Send + Sync>;
    #[derive(Clone)]
    struct Hooks<F>(F);
    trait Visit<'a>: Send + Sync {
        fn visit(&self, text: &'a str) -> usize;
    }
    impl<'a> Visit<'a> for u8 {
        fn visit(&self, text: &'a str) -> usize {
            text.len()
        }
    }

    #[idempotent]
    async fn alias(Extension(callback): Extension<Callback>, body: String) -> String {
        callback(&body)
    }
    #[idempotent]
    async fn written(
        Extension(callback): Extension<Arc<dyn Fn(&str) -> String + Send + Sync>>,
        body: String,
    ) -> String {
        callback(&body)
    }
    #[idempotent]
    async fn pointer(
        Extension(Hooks(f)): Extension<Hooks<for<'a> fn(&'a str) -> &'a str>>,
        body: String,
    ) -> String {
        f(&body).to_owned()
    }
    #[idempotent]
    async fn bound(
        Extension(visit): Extension<Arc<dyn for<'a> Visit<'a>>>,
        body: String,
    ) -> String {
        visit.visit(&body).to_string()
    }
    #[idempotent]
    async fn constant(Extension(text): Extension<&'static str>) -> &'static str {
        text
    }
    let callback: Callback = Arc::new(str::to_uppercase);
    let visit: Arc<dyn for<'a> Visit<'a>> = Arc::new(1_u8);
    let router = Router::new()
        .route("/alias", post(alias))
        .route("/written", post(written))
        .route("/pointer", post(pointer))
        .route("/bound", post(bound))
        .route("/constant", post(constant))
        .layer(Extension(callback))
        .layer(Extension(Hooks(
            str::trim as for<'a> fn(&'a str) -> &'a str,
        )))
        .layer(Extension(visit))
        .layer(Extension("text"));
    let router = protected(router);
    for (path, want) in [
        ("/alias", "A"),
        ("/written", "A"),
        ("/pointer", "a"),
        ("/bound", "1"),
        ("/constant", "text"),
    ] {
        assert_eq!(
            Post::json(path, "a").runs_and_replays(&router).await.body,
            want,
            "{path}"
        );
    }
}
