//! `#[idempotent]` depends on no name in scope, and takes none.

use axum::{Json, Router, extract::State, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::replay::{Post, protected};

mod b132 {
    #![allow(
        dead_code,
        unused_macros,
        reason = "names that are only there to be in the way"
    )]

    type Result<T> = ::core::result::Result<T, ()>;
    struct Option;
    struct String;
    struct Some;
    struct None;
    struct Ok;
    struct Box;
    struct Run;
    struct Idempotent;
    struct Options;
    struct Future;
    struct Probe;
    struct Duration;
    enum Response {
        A,
    }
    mod std {}
    mod core {}
    mod check {}
    mod axum {}
    mod idempotent_runtime {}
    macro_rules! concat {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! module_path {
        () => {
            compile_error!("the user's own")
        };
    }

    #[::idempotent_runtime::idempotent(
        subject = 7,
        name = "n",
        retention = "2h",
        wait = "1s",
        lease = "1s",
        on_store_failure = "open"
    )]
    pub(super) async fn h(
        ::axum::Json(n): ::axum::Json<u8>,
    ) -> ::core::result::Result<::axum::Json<u8>, ::axum::http::StatusCode> {
        ::core::result::Result::Ok(::axum::Json(n))
    }

    #[::idempotent_runtime::idempotent(required)]
    pub(super) async fn opaque() -> impl ::axum::response::IntoResponse {
        "opaque"
    }
}

#[tokio::test]
async fn b132_the_users_own_names() {
    let router = protected(Router::new().route("/h", post(b132::h)));
    assert_eq!(
        Post::json("/h", "5").runs_and_replays(&router).await.body,
        "5"
    );
    let router = protected(Router::new().route("/o", post(b132::opaque)));
    assert_eq!(
        Post::json("/o", "").send(&router, Some("b132")).await.body,
        "opaque"
    );
}

#[tokio::test]
async fn a_handler_named_like_an_argument() {
    #[idempotent(subject = login)]
    async fn login(Json(login): Json<String>) -> String {
        login
    }
    #[idempotent]
    async fn both(
        State(both): State<()>,
        uri: axum::http::Uri,
        Json(arg1): Json<String>,
    ) -> String {
        let () = both;
        format!("{uri}{arg1}")
    }
    let router = protected(Router::new().route("/login", post(login)));
    assert_eq!(
        Post::json("/login", "\"me\"")
            .runs_and_replays(&router)
            .await
            .body,
        "me"
    );
    let router = protected(Router::new().route("/both", post(both)));
    assert_eq!(
        Post::json("/both", "\"me\"")
            .runs_and_replays(&router)
            .await
            .body,
        "/bothme"
    );
}

#[tokio::test]
async fn arguments_named_like_the_expansions() {
    #[idempotent(subject = format!("{keyed}{}{response}", subject.len()))]
    async fn request(
        axum::extract::Path(keyed): axum::extract::Path<u8>,
        axum::extract::Query(subject): axum::extract::Query<Vec<(String, String)>>,
        _: axum::http::Uri,
        Json(response): Json<u8>,
    ) -> impl axum::response::IntoResponse {
        format!("{keyed} {} {response}", subject.len())
    }
    let router = protected(Router::new().route("/{n}", post(request)));
    assert_eq!(
        Post::json("/1?a=b", "5")
            .runs_and_replays(&router)
            .await
            .body,
        "1 1 5"
    );
}

mod b132_traits {
    #![expect(dead_code, reason = "methods that are only there to be in the way")]

    /// Methods that every type has.
    pub(super) trait Everywhere {
        fn verdict(&self) {}
        fn then(&self) {}
        fn required(&self) {}
        fn into_response(self)
        where
            Self: Sized,
        {
        }
    }
    impl<T: ?Sized> Everywhere for T {}
}

#[tokio::test]
async fn b132_traits_of_the_users_own() {
    use b132_traits::Everywhere as _;

    #[idempotent(required, subject = check)]
    async fn check(Json(check): Json<u8>) -> Result<Json<u8>, axum::http::StatusCode> {
        Ok(Json(check))
    }
    #[idempotent]
    async fn verdict(body: String) -> impl axum::response::IntoResponse {
        body.verdict();
        body
    }
    let router = protected(
        Router::new()
            .route("/check", post(check))
            .route("/verdict", post(verdict)),
    );
    assert_eq!(
        Post::json("/check", "5")
            .send(&router, Some("traits"))
            .await
            .body,
        "5"
    );
    assert_eq!(
        Post::json("/verdict", "5")
            .runs_and_replays(&router)
            .await
            .body,
        "5"
    );
}

#[tokio::test]
async fn raw_identifiers() {
    #[idempotent(subject = r#type)]
    async fn r#match(Json(r#type): Json<u8>) -> String {
        r#type.to_string()
    }
    #[idempotent(subject = format!("{plain}{type}", type = r#type))]
    async fn r#move(
        axum::extract::Path(r#type): axum::extract::Path<u8>,
        Json(r#plain): Json<u8>,
    ) -> String {
        (r#type + plain).to_string()
    }
    // There is no `r#self`.
    #[idempotent]
    async fn never_raw(_self: axum::http::Method, Json(_crate): Json<u8>) -> &'static str {
        "never raw"
    }
    let router = protected(
        Router::new()
            .route("/never-raw", post(never_raw))
            .route("/m", post(r#match))
            .route("/v/{n}", post(r#move)),
    );
    assert_eq!(
        Post::json("/m", "5").runs_and_replays(&router).await.body,
        "5"
    );
    assert_eq!(
        Post::json("/v/2", "5").runs_and_replays(&router).await.body,
        "7"
    );
    let answer = Post::json("/never-raw", "5")
        .runs_and_replays(&router)
        .await;
    assert_eq!(answer.body, "never raw");
}
