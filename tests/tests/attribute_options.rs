//! The options of `#[idempotent]` that the expansion itself carries out.

use axum::{
    Extension, Json, Router,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts, response},
    routing::post,
};
use idempotent_runtime::{Verdict, idempotent};
use idempotent_tests::replay::{Post, protected};
use serde::Deserialize;

struct User {
    id: u32,
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let header = parts
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        let id = header
            .and_then(|value| value.strip_prefix("Bearer "))
            .and_then(|id| id.parse().ok());
        id.map(|id| Self { id }).ok_or(StatusCode::UNAUTHORIZED)
    }
}

#[derive(Deserialize)]
struct Order {
    n: u32,
    tags: Option<Vec<String>>,
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of shapes")]
async fn subjects() {
    #[idempotent(subject = user.id)]
    async fn field(user: User) -> &'static str {
        "field"
    }
    #[idempotent(subject = format!("{}:{}", user.id, n))]
    async fn several(
        State(()): State<()>,
        user: User,
        Path((n, _)): Path<(u8, u8)>,
        Json(mut order): Json<Order>,
    ) -> String {
        order.n += 1;
        format!("{} {n}", order.n)
    }
    #[idempotent(subject = n + 1)]
    async fn arithmetic(Json(Order { n, .. }): Json<Order>) -> String {
        n.to_string()
    }
    #[idempotent(subject = whole.n)]
    async fn bound(Json(whole @ Order { n: _, .. }): Json<Order>) -> String {
        whole.n.to_string()
    }
    #[idempotent(subject = n)]
    async fn beside_others(Json(Order { mut n, tags }): Json<Order>) -> String {
        n += u32::from(tags.is_some());
        n.to_string()
    }
    #[idempotent(subject = format!("{step}{n}"))]
    async fn behind_a_reference(
        Extension(&step): Extension<&'static u32>,
        Json(Order { ref n, .. }): Json<Order>,
    ) -> String {
        (n + step).to_string()
    }
    #[idempotent(subject = "everybody")]
    async fn constant(_: User) -> &'static str {
        "constant"
    }
    #[idempotent(subject = format!("{n}"))]
    async fn in_format_string(_: User, Json(Order { n, .. }): Json<Order>) -> &'static str {
        "only the subject has a use of n"
    }
    let router = Router::new()
        .route("/field", post(field))
        .route("/several/{a}/{b}", post(several))
        .route("/arithmetic", post(arithmetic))
        .route("/bound", post(bound))
        .route("/beside-others", post(beside_others))
        .route("/behind-a-reference", post(behind_a_reference))
        .layer(Extension(&2_u32))
        .route("/constant", post(constant))
        .route("/in-format-string", post(in_format_string));
    let router = protected(router);
    for (path, want) in [
        ("/field", "field"),
        ("/several/3/4", "2 3"),
        ("/arithmetic", "1"),
        ("/bound", "1"),
        ("/beside-others", "1"),
        ("/behind-a-reference", "3"),
        ("/constant", "constant"),
        ("/in-format-string", "only the subject has a use of n"),
    ] {
        assert_eq!(
            Post::json(path, r#"{"n":1}"#)
                .runs_and_replays(&router)
                .await
                .body,
            want,
            "{path}"
        );
    }
}

#[tokio::test]
async fn subjects_of_every_form() {
    #[idempotent(subject = last)]
    async fn slice(Json([_, .., last]): Json<[u8; 4]>) -> String {
        last.to_string()
    }
    #[idempotent(subject = middle.len())]
    async fn named(Json([first, middle @ .., last]): Json<[u8; 4]>) -> String {
        format!("{first}{middle:?}{last}")
    }
    #[idempotent(subject = first)]
    async fn beside_named(Json([first, middle @ .., last]): Json<[u8; 4]>) -> String {
        format!("{first}{middle:?}{last}")
    }
    #[idempotent(subject = second)]
    async fn tuple(Json((first, second, .., last)): Json<(u8, u8, u8, u8)>) -> String {
        format!("{first}{second}{last}")
    }
    #[idempotent(subject = format!("{:?}", (0..*end).sum::<u8>()))]
    async fn range(Json((_, _, _, end)): Json<(u8, u8, u8, u8)>) -> String {
        end.to_string()
    }
    #[idempotent(subject = format!("{n:0>width$.digits$}"))]
    async fn width(Json((n, _, width, digits)): Json<(f32, u8, usize, usize)>) -> String {
        format!("{n:0>width$.digits$}")
    }
    let router = Router::new()
        .route("/range", post(range))
        .route("/width", post(width))
        .route("/slice", post(slice))
        .route("/named", post(named))
        .route("/beside-named", post(beside_named))
        .route("/tuple", post(tuple));
    let router = protected(router);
    for (path, want) in [
        ("/range", "4"),
        ("/width", "1.0000"),
        ("/slice", "4"),
        ("/named", "1[2, 3]4"),
        ("/beside-named", "1[2, 3]4"),
        ("/tuple", "124"),
    ] {
        let answer = Post::json(path, "[1,2,3,4]")
            .runs_and_replays(&router)
            .await;
        assert_eq!(answer.body, want, "{path}");
    }
}

#[tokio::test]
async fn each_subject_has_its_own_keys() {
    #[idempotent(subject = order.n % 2)]
    async fn h(Path(id): Path<u8>, Json(order): Json<Order>) -> String {
        format!("{id} {}", order.n)
    }
    let router = protected(Router::new().route("/{id}", post(h)));
    let send = async |body| Post::json("/1", body).send(&router, Some("own-keys")).await;
    let first = send(r#"{"n":1}"#).await;
    assert_eq!((first.status, first.replayed), (200, false));
    let other = send(r#"{"n":2}"#).await;
    assert_eq!(
        (other.status, other.replayed),
        (200, false),
        "another subject's key"
    );
    assert!(send(r#"{"n":1}"#).await.replayed);
    assert_eq!(
        send(r#"{"n":3}"#).await.status,
        422,
        "the same subject's key"
    );
}

#[tokio::test]
async fn required() {
    #[idempotent(required)]
    async fn h(Json(order): Json<Order>) -> String {
        order.n.to_string()
    }
    let router = protected(Router::new().route("/h", post(h)));
    let post = Post::json("/h", r#"{"n":1}"#);
    assert_eq!(post.send(&router, None).await.status, 400);
    assert_eq!(post.send(&router, Some("required")).await.body, "1");
    let direct: String = h(Json(Order { n: 2, tags: None }).into()).original().await;
    assert_eq!(direct, "2", "a direct call needs no key");
}

fn created_only(parts: &response::Parts) -> Verdict {
    if parts.status == StatusCode::CREATED {
        Verdict::Store
    } else {
        Verdict::Release
    }
}

#[tokio::test]
async fn verdict() {
    #[idempotent(verdict = created_only)]
    async fn h(Json(order): Json<Order>) -> StatusCode {
        if order.n == 1 {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        }
    }
    let router = protected(Router::new().route("/h", post(h)));
    for (key, body, status, stored) in [
        ("a", r#"{"n":1}"#, 201, true),
        ("b", r#"{"n":2}"#, 200, false),
    ] {
        let first = Post::json("/h", body).send(&router, Some(key)).await;
        let again = Post::json("/h", body).send(&router, Some(key)).await;
        assert_eq!((first.status, first.replayed), (status, false));
        assert_eq!((again.status, again.replayed), (status, stored));
    }
}

#[tokio::test]
async fn ignore() {
    #[idempotent(ignore("/tags"))]
    async fn h(Json(order): Json<Order>) -> String {
        order.n.to_string()
    }
    let router = protected(Router::new().route("/h", post(h)));
    assert!(
        !Post::json("/h", r#"{"n":1,"tags":["a"]}"#)
            .send(&router, Some("ignore"))
            .await
            .replayed
    );
    assert!(
        Post::json("/h", r#"{"n":1,"tags":["b"]}"#)
            .send(&router, Some("ignore"))
            .await
            .replayed
    );
    assert_eq!(
        Post::json("/h", r#"{"n":2,"tags":["a"]}"#)
            .send(&router, Some("ignore"))
            .await
            .status,
        422
    );
}

#[tokio::test]
async fn name() {
    #[idempotent(name = "shared")]
    async fn one() {}
    #[idempotent(name = "shared")]
    async fn other() {}
    #[idempotent]
    async fn third() {}
    let router = Router::new()
        .route("/one", post(one))
        .route("/other", post(other))
        .route("/third", post(third));
    let router = protected(router);
    for (path, status) in [("/one", 200), ("/other", 422), ("/third", 200)] {
        let answer = Post::json(path, "").send(&router, Some("name")).await;
        assert_eq!(
            answer.status, status,
            "handlers of one name share their keys: {path}"
        );
    }
}

#[tokio::test]
async fn all_options_at_once() {
    #[idempotent(
        required,
        subject = order.n,
        name = "create-order",
        retention = "1day 12h",
        wait = "0s",
        lease = "1500ms",
        on_store_failure = "closed",
        on_lost_run = "unknown",
        verdict = created_only,
        ignore("/tags", "/a~1b/0"),
        crate = ::idempotent_runtime,
    )]
    async fn h(Json(order): Json<Order>) -> (StatusCode, String) {
        (StatusCode::CREATED, order.n.to_string())
    }
    let router = protected(Router::new().route("/h", post(h)));
    let post = Post::json("/h", r#"{"n":1}"#);
    assert_eq!(post.send(&router, Some("all")).await.status, 201);
    assert!(post.send(&router, Some("all")).await.replayed);
}
