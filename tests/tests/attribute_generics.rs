//! `#[idempotent]` on generic handlers, on associated functions, under every kind of state.

use std::{future::Future, marker::PhantomData, sync::Arc};

use axum::{
    Json, Router,
    extract::{FromRef, State},
    http::StatusCode,
    routing::{MethodRouter, post},
};
use idempotent_runtime::idempotent;
use idempotent_tests::replay::{Post, protected};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[derive(Clone)]
struct Db(Arc<str>);

#[derive(Clone)]
struct App {
    db: Db,
}

impl App {
    fn new() -> Self {
        Self {
            db: Db("db".into()),
        }
    }
}

impl FromRef<App> for Db {
    fn from_ref(app: &App) -> Self {
        app.db.clone()
    }
}

#[derive(Deserialize, Serialize, Clone)]
struct NewOrder {
    n: u32,
}

#[derive(Serialize)]
struct Order {
    n: u32,
}

/// Neither its futures nor its types are said to be `Send`.
trait Resource: Sized {
    type New;
    fn make(new: Self::New) -> impl Future<Output = Self>;
}

impl Resource for Order {
    type New = NewOrder;

    async fn make(new: NewOrder) -> Self {
        tokio::task::yield_now().await;
        Self { n: new.n + 1 }
    }
}

struct Repo<T>(Db, PhantomData<fn() -> T>);

impl<T> Clone for Repo<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> FromRef<App> for Repo<T> {
    fn from_ref(app: &App) -> Self {
        Self(app.db.clone(), PhantomData)
    }
}

#[idempotent]
async fn create<T: Resource>(
    State(repo): State<Repo<T>>,
    Json(new): Json<T::New>,
) -> (StatusCode, Json<T>)
where
    T::New: DeserializeOwned,
{
    let _ = &repo.0.0;
    (StatusCode::CREATED, Json(T::make(new).await))
}

#[tokio::test]
async fn b115_no_bounds_but_the_authors_own() {
    let router = protected(
        Router::new()
            .route("/h", post(create::<Order>))
            .with_state(App::new()),
    );
    let answer = Post::json("/h", r#"{"n":1}"#)
        .runs_and_replays(&router)
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (201, r#"{"n":2}"#));
}

trait Name {
    const NAME: &'static str;
}
#[derive(Clone)]
struct Pg;
impl Name for Pg {
    const NAME: &'static str = "pg";
}
#[derive(Clone)]
struct Mem;
impl Name for Mem {
    const NAME: &'static str = "mem";
}
impl FromRef<App> for Pg {
    fn from_ref(_: &App) -> Self {
        Self
    }
}
impl FromRef<App> for Mem {
    fn from_ref(_: &App) -> Self {
        Self
    }
}

#[tokio::test]
async fn b115_types_and_constants() {
    #[idempotent]
    async fn create<R, const N: usize>(State(_r): State<R>) -> String
    where
        R: Name + Clone + Send + Sync + 'static,
    {
        format!("{}{N}", R::NAME)
    }
    let router = Router::new()
        .route("/pg", post(create::<Pg, 3>))
        .route("/mem", post(create::<Mem, 4>))
        .with_state(App::new());
    let router = protected(router);
    let first = Post::json("/pg", "").send(&router, Some("b115")).await;
    let other = Post::json("/mem", "").send(&router, Some("b115")).await;
    assert_eq!((first.body.as_str(), first.replayed), ("pg3", false));
    assert_eq!(
        (other.body.as_str(), other.replayed),
        ("mem4", false),
        "another route is another scope"
    );
}

#[tokio::test]
async fn impl_trait_in_arguments() {
    trait Store: Send + Sync {
        fn text(&self) -> String;
    }
    impl Store for Db {
        fn text(&self) -> String {
            self.0.to_string()
        }
    }
    // Axum can't route it, since nothing names its type. It can be called.
    #[idempotent]
    async fn h(State(store): State<impl Store>, body: impl Into<String>) -> String {
        store.text() + &body.into()
    }
    #[idempotent]
    async fn routed(State(db): State<Db>, body: String) -> String {
        h(State(db), body.into()).original().await
    }
    let router = protected(
        Router::new()
            .route("/h", post(routed))
            .with_state(App::new()),
    );
    assert_eq!(
        Post::json("/h", "x").runs_and_replays(&router).await.body,
        "dbx"
    );
}

#[idempotent]
async fn with_db(State(db): State<Db>, body: String) -> String {
    format!("{}{body}", db.0)
}

#[tokio::test]
async fn a_router_generic_over_its_state() {
    fn routes<S: Clone + Send + Sync + 'static>() -> Router<S>
    where
        Db: FromRef<S>,
    {
        Router::new().route("/h", post(with_db)).fallback(with_db)
    }
    let router = protected(routes().with_state(App::new()));
    assert_eq!(
        Post::json("/h", "1").runs_and_replays(&router).await.body,
        "db1"
    );
    assert_eq!(
        Post::json("/elsewhere", "2").send(&router, None).await.body,
        "db2"
    );
}

mod api {
    use axum::{Json, http::StatusCode};
    use idempotent_runtime::idempotent;

    use super::NewOrder;

    pub(super) struct Api;

    impl Api {
        #[idempotent]
        pub(super) async fn create(Json(new): Json<NewOrder>) -> (StatusCode, Json<NewOrder>) {
            struct Next(u32);
            impl Next {
                fn of(n: u32) -> Self {
                    Self(n + 1)
                }
                fn get(&self) -> u32 {
                    self.0
                }
            }
            fn longest<'a>(a: &'a str, b: &'a str) -> &'a str {
                if a.len() > b.len() { a } else { b }
            }
            let n = if longest("a", "bb") == "bb" {
                Next::of(new.n).get()
            } else {
                0
            };
            (StatusCode::CREATED, Json(NewOrder { n }))
        }

        #[idempotent]
        pub(in crate::api) async fn restricted(body: String) -> String {
            body
        }

        pub(super) fn restricted_route() -> axum::routing::MethodRouter {
            axum::routing::post(Self::restricted)
        }
    }
}

#[tokio::test]
async fn associated_functions() {
    let router = Router::new()
        .route("/h", post(api::Api::create))
        .route("/r", api::Api::restricted_route());
    let router = protected(router);
    assert_eq!(
        Post::json("/h", r#"{"n":1}"#)
            .runs_and_replays(&router)
            .await
            .body,
        r#"{"n":2}"#
    );
    assert_eq!(
        Post::json("/r", "x").runs_and_replays(&router).await.body,
        "x"
    );
}

macro_rules! handlers {
    ($($name:ident: $ty:ty = $subject:expr),*) => {$(
        #[idempotent(subject = $subject, retention = "2h")]
        async fn $name(Json(body): Json<$ty>) -> Json<$ty> {
            Json(body)
        }
    )*};
}
handlers!(order: NewOrder = "all", number: u32 = 7);

macro_rules! whole {
    ($item:item) => {
        #[idempotent]
        $item
    };
}
whole! {
    async fn wrapped(body: String) -> String {
        body
    }
}

#[tokio::test]
async fn made_by_macro_rules() {
    let router = Router::new()
        .route("/order", post(order))
        .route("/number", post(number))
        .route("/wrapped", post(wrapped));
    let router = protected(router);
    assert_eq!(
        Post::json("/order", r#"{"n":1}"#)
            .runs_and_replays(&router)
            .await
            .body,
        r#"{"n":1}"#
    );
    assert_eq!(
        Post::json("/number", "5")
            .runs_and_replays(&router)
            .await
            .body,
        "5"
    );
    assert_eq!(
        Post::json("/wrapped", "5")
            .runs_and_replays(&router)
            .await
            .body,
        "5"
    );
}

#[tokio::test]
async fn recursive() {
    #[idempotent]
    async fn sum(Json(n): Json<u32>) -> Json<u32> {
        if n == 0 {
            return Json(0);
        }
        let Json(rest) = Box::pin(sum(Json(n - 1))).await;
        Json(n + rest)
    }
    let router = protected(Router::new().route("/h", post(sum)));
    assert_eq!(
        Post::json("/h", "4").runs_and_replays(&router).await.body,
        "10"
    );
}

#[tokio::test]
async fn inside_a_function() {
    fn local<S: Clone + Send + Sync + 'static>() -> MethodRouter<S> {
        const STEP: u32 = 2;
        #[idempotent]
        async fn inside(Json(body): Json<u32>) -> Json<u32> {
            const TWO: u32 = 2;
            static ONE: u32 = 1;
            Json(body * TWO + ONE + STEP)
        }
        post(inside)
    }
    let router = protected(Router::new().route("/h", local()));
    assert_eq!(
        Post::json("/h", "5").runs_and_replays(&router).await.body,
        "13"
    );
}

#[tokio::test]
async fn called_in_a_unit_test() {
    #[idempotent(required, subject = db.0)]
    async fn h(State(db): State<Db>, Json(body): Json<u32>) -> Result<Json<u32>, StatusCode> {
        drop(db);
        Ok(Json(body + 1))
    }
    let answer: Result<Json<u32>, StatusCode> =
        h(State(Db("db".into())), Json(1).into()).original().await;
    assert_eq!(answer.map(|Json(n)| n), Ok(2));
    let (_, Json(order)) = create::<Order>(
        State(Repo::from_ref(&App::new())),
        Json(NewOrder { n: 1 }).into(),
    )
    .original()
    .await;
    assert_eq!(order.n, 2);
}
