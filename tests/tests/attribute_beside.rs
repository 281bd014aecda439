//! `#[idempotent]` beside other attributes, above and below them.

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use axum_extra::routing::{RouterExt, TypedPath};
use idempotent_runtime::{idempotent, non_idempotent};
use idempotent_tests::replay::{Post, protected};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(Deserialize, Serialize, Debug, Clone, utoipa::ToSchema)]
struct Body {
    n: u32,
}

const JSON: &str = r#"{"n":1}"#;

async fn answers(router: Router, path: &str) {
    let answer = Post::json(path, JSON)
        .runs_and_replays(&protected(router))
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (200, JSON));
}

#[tokio::test]
async fn b127_instrument() {
    #[tracing::instrument(skip(db), fields(n = body.n), ret, err(Debug))]
    #[idempotent(subject = body.n)]
    async fn above(State(db): State<()>, Json(body): Json<Body>) -> Result<Json<Body>, StatusCode> {
        let () = db;
        Ok(Json(body))
    }
    #[idempotent(subject = body.n)]
    #[tracing::instrument(skip(db), fields(n = body.n), ret, err(Debug))]
    async fn below(State(db): State<()>, Json(body): Json<Body>) -> Result<Json<Body>, StatusCode> {
        let () = db;
        Ok(Json(body))
    }
    #[idempotent]
    #[cfg_attr(all(), tracing::instrument(skip_all), doc = "Both places.")]
    async fn conditional(Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }
    let router = Router::new()
        .route("/above", post(above))
        .route("/below", post(below))
        .route("/if", post(conditional));
    answers(router.clone(), "/above").await;
    answers(router.clone(), "/below").await;
    answers(router, "/if").await;
}

#[tokio::test]
async fn b127_debug_handler() {
    #[axum::debug_handler(state = ())]
    #[idempotent]
    async fn above(State(()): State<()>, Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }
    #[idempotent]
    #[axum::debug_handler(state = ())]
    async fn below(State(()): State<()>, Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }
    let router = Router::new()
        .route("/above", post(above))
        .route("/below", post(below));
    answers(router.clone(), "/above").await;
    answers(router, "/below").await;
}

mod documented {
    use axum::Json;
    use idempotent_runtime::idempotent;

    use super::Body;

    /// Above.
    #[utoipa::path(post, path = "/above", responses((status = 200, body = Body)))]
    #[idempotent]
    pub(super) async fn above(Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }

    /// Below.
    #[idempotent]
    #[utoipa::path(post, path = "/below", responses((status = 200, body = Body)))]
    #[tracing::instrument(skip_all)]
    pub(super) async fn below(Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }

    #[idempotent(required)]
    #[cfg_attr(all(), utoipa::path(post, path = "/if", responses((status = 200, body = Body))), allow(unused_mut))]
    pub(super) async fn conditional(Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }
}

#[tokio::test]
async fn b127_utoipa() {
    let router = OpenApiRouter::<()>::new()
        .routes(routes!(documented::above))
        .routes(routes!(documented::below))
        .routes(routes!(documented::conditional));
    let (router, api) = router.split_for_parts();
    answers(router.clone(), "/above").await;
    answers(router, "/below").await;
    for path in ["/above", "/below", "/if"] {
        let body = api
            .paths
            .paths
            .get(path)
            .and_then(|item| item.post.as_ref())
            .and_then(|post| post.request_body.as_ref());
        let Some(RefOr::T(body)) = body else {
            panic!("{path} documents its request body")
        };
        assert!(
            body.content.contains_key("application/json"),
            "{path} documents its request body"
        );
    }
}

#[derive(TypedPath, Deserialize)]
#[typed_path("/typed/{id}")]
struct Typed {
    id: u32,
}

#[derive(TypedPath, Deserialize)]
#[typed_path("/only/{id}")]
struct Only {
    id: u32,
}

#[tokio::test]
async fn b127_typed_path() {
    #[idempotent]
    async fn first(Typed { id }: Typed, Json(body): Json<Body>) -> String {
        format!("{id} {}", body.n)
    }
    #[idempotent]
    async fn only(Only { id }: Only) -> String {
        id.to_string()
    }
    let router = protected(Router::new().typed_post(first).typed_post(only));
    assert_eq!(
        Post::json("/typed/7", JSON)
            .runs_and_replays(&router)
            .await
            .body,
        "7 1"
    );
    assert_eq!(
        Post::json("/only/7", JSON)
            .runs_and_replays(&router)
            .await
            .body,
        "7"
    );
}

#[tokio::test]
async fn b123_cfg_on_the_handler() {
    #[cfg(any())]
    #[idempotent]
    async fn h(nothing: NotAType) {}
    #[idempotent]
    #[cfg(not(any()))]
    #[cfg_attr(all(), allow(unused_mut))]
    #[inline]
    async fn h(Json(mut body): Json<Body>) -> Json<Body> {
        Json(body)
    }
    #[idempotent]
    #[cfg(any())]
    async fn h(nothing: NotAType) {}
    answers(Router::new().route("/h", post(h)), "/h").await;
}

#[tokio::test]
async fn an_attribute_within_the_body() {
    #[idempotent(subject = body.n)]
    async fn h(Json(mut body): Json<Body>) -> impl axum::response::IntoResponse {
        #![allow(unused_mut, reason = "there is one")]
        use std::convert::identity;
        Json(identity(body))
    }
    answers(Router::new().route("/h", post(h)), "/h").await;
}

#[tokio::test]
async fn non_idempotent_changes_nothing() {
    #[non_idempotent("it only counts")]
    async fn h(Json(body): Json<Body>) -> Json<Body> {
        Json(body)
    }
    let router = protected(Router::new().route("/h", post(h)));
    for _ in 0..2 {
        let answer = Post::json("/h", JSON)
            .send(&router, Some("non-idempotent"))
            .await;
        assert_eq!((answer.body.as_str(), answer.replayed), (JSON, false));
    }
    let Json(body) = h(Json(Body { n: 1 })).await;
    assert_eq!(body.n, 1, "the function is the user's own");
}
