//! `#[idempotent]` on arguments that a condition leaves out.

use axum::{Json, Router, http::HeaderMap, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::replay::{Post, protected};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[derive(Deserialize, Serialize)]
struct Body {
    n: u32,
}

const JSON: &str = r#"{"n":1}"#;

/// Routes one handler, sends `body` and checks the answer of the run and of its replay.
macro_rules! answers {
    ($handler:expr, $body:expr => $status:literal $text:expr) => {{
        let router = protected(Router::new().route("/h", post($handler)));
        let answer = Post::json("/h", $body).runs_and_replays(&router).await;
        assert_eq!((answer.status, answer.body.as_str()), ($status, $text));
    }};
}

#[tokio::test]
async fn b117_cfg_on_an_argument() {
    #[idempotent]
    async fn middle(
        #[cfg(any())] x: NotAType,
        #[cfg(not(any()))] headers: HeaderMap,
        body: String,
    ) -> String {
        format!("{} {body}", headers.contains_key("authorization"))
    }
    answers!(middle, "b" => 200 "true b");
}

#[tokio::test]
async fn b117_cfg_decides_which_argument_is_last() {
    #[idempotent]
    async fn without(headers: HeaderMap, #[cfg(any())] body: NotAType) -> String {
        headers.contains_key("authorization").to_string()
    }
    #[idempotent]
    async fn with(
        #[cfg_attr(all(), cfg(any()))] x: NotAType,
        headers: HeaderMap,
        #[cfg(not(any()))] body: String,
    ) -> String {
        format!("{} {body}", headers.contains_key("authorization"))
    }
    #[idempotent]
    async fn either(
        #[cfg(any())] a: NotAType,
        #[cfg(not(any()))] b: String,
        #[cfg(any())] c: NotAType,
    ) -> String {
        b
    }
    #[idempotent]
    async fn none_left(#[cfg(any())] a: NotAType) -> &'static str {
        "none"
    }
    #[idempotent]
    async fn generic<
        #[cfg(any())] T: NotATrait,
        #[cfg(not(any()))] U: DeserializeOwned + Serialize,
    >(
        Json(body): Json<U>,
    ) -> Json<U> {
        Json(body)
    }
    answers!(without, "" => 200 "true");
    answers!(with, "b" => 200 "true b");
    answers!(either, "b" => 200 "b");
    answers!(none_left, "" => 200 "none");
    answers!(generic::<Body>, JSON => 200 JSON);
}
