//! Whose key it is, and on which route.

use std::net::{IpAddr, SocketAddr};

use axum::{
    Extension, Router,
    body::Body,
    extract::{ConnectInfo, FromRequestParts, Request, State, connect_info::MockConnectInfo},
    http::{StatusCode, request::Parts},
    response::IntoResponse,
    routing::{post, put},
};
use idempotent_runtime::{Caller, IdempotencyRuntime, Settings, Subject, idempotent};
use idempotent_tests::http::{Embedded, Reply, Runs, keyed, post as post_to, send};

#[idempotent]
async fn create(State(runs): State<Runs>, body: String) -> String {
    format!("{} {body}", runs.add())
}

fn router(runs: &Runs) -> Router {
    Router::new()
        .route("/orders", post(create).put(create))
        .route("/refunds", post(create))
        .with_state(runs.clone())
}

fn with(request: Request, name: &'static str, value: &str) -> Request {
    let mut request = request;
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

async fn as_user(app: &Router, authorization: &str) -> Reply {
    send(
        app,
        with(keyed("/orders", "k", "{}"), "authorization", authorization),
    )
    .await
}

#[tokio::test]
async fn b028_routes_and_methods_are_apart() {
    let runs = Runs::default();
    let app = Embedded::shared().on(router(&runs));
    let to = |method: &str, path: &str| {
        let mut request = keyed(path, "k", r#"{"id":1}"#);
        *request.method_mut() = method.parse().unwrap();
        request
    };
    for (method, path) in [
        ("POST", "/orders"),
        ("POST", "/refunds"),
        ("PUT", "/orders"),
    ] {
        let first = send(&app, to(method, path)).await;
        assert!(!first.is_replay(), "{method} {path}");
        let again = send(&app, to(method, path)).await;
        assert!(
            again.is_replay() && again.body == first.body,
            "{method} {path}"
        );
    }
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn b029_callers_never_share_a_record() {
    let runs = Runs::default();
    let app = Embedded::with(Caller::authorization(), Settings::default()).on(router(&runs));
    let a = as_user(&app, "Bearer a").await;
    let b = as_user(&app, "Bearer b").await;
    assert!(!a.is_replay() && !b.is_replay() && a.body != b.body);
    assert_eq!(
        as_user(&app, "bearer  a").await.body,
        a.body,
        "the scheme is case-insensitive"
    );
    assert!(!as_user(&app, "Basic a").await.is_replay());
    assert_eq!(runs.count(), 3);
    for nobody in [
        "",
        "Bearer",
        "Bearer  ",
        "AWS4-HMAC-SHA256 Credential=a, Signature=b",
        "Digest username=\"a\"",
    ] {
        let reply = as_user(&app, nobody).await;
        assert_eq!(
            (reply.status.as_u16(), reply.problem().as_str()),
            (500, "urn:idempotency:caller-unidentified"),
            "{nobody}"
        );
    }
    assert_eq!(
        send(&app, keyed("/orders", "k", "{}")).await.problem(),
        "urn:idempotency:caller-unidentified"
    );
    assert_eq!(runs.count(), 3);
}

mod v1 {
    use super::{Runs, State, idempotent};
    #[idempotent]
    pub(super) async fn create(State(runs): State<Runs>) -> String {
        format!("v1 {}", runs.add())
    }
}

mod v2 {
    use super::{Runs, State, idempotent};
    #[idempotent]
    pub(super) async fn create(State(runs): State<Runs>) -> String {
        format!("v2 {}", runs.add())
    }
}

#[tokio::test]
async fn b030_the_scope_is_the_route_in_use_not_the_function() {
    let runs = Runs::default();
    let router = Router::new()
        .route("/v1/orders", post(v1::create))
        .route("/v2/orders", post(v2::create))
        .route("/v2/more", post(v2::create))
        .route("/v3/orders", post(v1::create))
        .with_state(runs.clone());
    let app = Embedded::shared().on(router);
    let paths = ["/v1/orders", "/v2/orders", "/v2/more", "/v3/orders"];
    let mut first = Vec::new();
    for path in paths {
        first.push(send(&app, keyed(path, "k", "")).await);
    }
    for (path, first) in paths.iter().zip(first) {
        let again = send(&app, keyed(path, "k", "")).await;
        assert!(
            !first.is_replay() && again.is_replay() && again.body == first.body,
            "{path}"
        );
    }
    assert_eq!(runs.count(), 4);
}

#[idempotent(name = "create-order")]
async fn named(State(runs): State<Runs>) -> String {
    runs.add().to_string()
}

#[tokio::test]
async fn a_name_stands_in_for_the_route() {
    let runs = Runs::default();
    let router = Router::new()
        .route("/old", post(named))
        .route("/new", post(named))
        .with_state(runs.clone());
    let app = Embedded::shared().on(router);
    assert!(!send(&app, keyed("/old", "k", "")).await.is_replay());
    // the path is part of the request, so it is the same key with another request
    assert_eq!(send(&app, keyed("/new", "k", "")).await.status, 422);
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn b031_a_resolver_that_fails_refuses_in_its_own_words() {
    let runs = Runs::default();
    let caller =
        Caller::from_fn(
            |parts| match parts.headers.get("x-user").map(|user| user.to_str()) {
                Some(Ok("expired")) => {
                    Err((StatusCode::UNAUTHORIZED, "log in again").into_response())
                }
                Some(Ok(user)) => Ok(Some(Subject::new(user))),
                _ => Ok(None),
            },
        );
    let embedded = Embedded::with(caller, Settings::default());
    let app = embedded.on(router(&runs));
    let refused = send(&app, with(keyed("/orders", "k", "{}"), "x-user", "expired")).await;
    assert_eq!(
        (refused.status.as_u16(), refused.text().as_str()),
        (401, "log in again")
    );
    assert_eq!((runs.count(), embedded.store.len()), (0, 0));
    assert_eq!(send(&app, keyed("/orders", "k", "{}")).await.status, 500);
    assert_eq!(
        send(&app, with(keyed("/orders", "k", "{}"), "x-user", " "))
            .await
            .status,
        500,
        "a blank subject is none"
    );
    assert_eq!(
        send(&app, with(keyed("/orders", "k", "{}"), "x-user", "a"))
            .await
            .outcome(),
        (200, false)
    );
}

#[derive(Clone)]
struct AuthedUser {
    id: u64,
}

impl<S: Sync> FromRequestParts<S> for AuthedUser {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        match parts
            .headers
            .get("x-user")
            .and_then(|user| user.to_str().ok())
        {
            Some("revoked") | None => Err(StatusCode::FORBIDDEN),
            Some(id) => id
                .parse()
                .map(|id| Self { id })
                .map_err(|_| StatusCode::FORBIDDEN),
        }
    }
}

#[idempotent(subject = user.id)]
async fn own(State(runs): State<Runs>, user: AuthedUser, body: String) -> String {
    format!("{} {} {body}", user.id, runs.add())
}

#[tokio::test]
async fn a_subject_of_the_arguments_wins_over_the_caller() {
    let runs = Runs::default();
    // nobody would be identified, and yet nobody is refused
    let caller = Caller::from_fn(|_| Err(StatusCode::IM_A_TEAPOT.into_response()));
    let router = Router::new().route("/", post(own)).with_state(runs.clone());
    let app = Embedded::with(caller, Settings::default()).on(router);
    let of = |user| with(keyed("/", "k", "x"), "x-user", user);
    let (one, two) = (send(&app, of("1")).await, send(&app, of("2")).await);
    assert!(!one.is_replay() && !two.is_replay());
    assert_eq!(send(&app, of("1")).await.body, one.body);
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn b035_a_caller_that_the_extractors_reject_sees_no_replay() {
    let runs = Runs::default();
    let router = Router::new()
        .route("/", post(gated))
        .with_state(runs.clone());
    let app = Embedded::shared().on(router);
    let of = |user| with(keyed("/", "k", "x"), "x-user", user);
    let first = send(&app, of("1")).await;
    assert_eq!(first.status, 200);
    let revoked = send(&app, of("revoked")).await;
    assert_eq!(
        (revoked.outcome(), revoked.body.is_empty()),
        ((403, false), true)
    );
    assert!(send(&app, of("1")).await.is_replay());
    assert_eq!(runs.count(), 1);
}

#[idempotent]
async fn gated(State(runs): State<Runs>, _user: AuthedUser, body: String) -> String {
    format!("{} {body}", runs.add())
}

fn from(address: &str, headers: &[(&'static str, &str)]) -> Request {
    let mut request = keyed("/orders", "k", "{}");
    let ip: IpAddr = address.parse().unwrap();
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::new(ip, rand_port())));
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

/// Another port each time, as for a new connection.
fn rand_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static PORT: AtomicU16 = AtomicU16::new(1024);
    PORT.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test]
async fn peers_are_told_apart_by_address_and_only_without_credentials() {
    let runs = Runs::default();
    let caller = Caller::subject()
        .credential_headers(["x-session"])
        .or(Caller::peer());
    let app = Embedded::with(caller, Settings::default()).on(router(&runs));
    assert!(!send(&app, from("192.0.2.1", &[])).await.is_replay());
    assert!(
        send(&app, from("192.0.2.1", &[])).await.is_replay(),
        "the port is no part of it"
    );
    assert!(
        send(&app, from("::ffff:192.0.2.1", &[])).await.is_replay(),
        "nor is the notation"
    );
    assert!(!send(&app, from("192.0.2.2", &[])).await.is_replay());
    assert!(!send(&app, from("2001:db8::1", &[])).await.is_replay());
    for credential in ["authorization", "cookie", "x-api-key", "x-session"] {
        let reply = send(&app, from("192.0.2.1", &[(credential, "secret")])).await;
        assert_eq!(
            reply.problem(),
            "urn:idempotency:caller-unidentified",
            "{credential}"
        );
    }
    let mut request = from("192.0.2.1", &[]);
    request.extensions_mut().insert(Subject::new("u"));
    assert!(
        !send(&app, request).await.is_replay(),
        "a subject comes first"
    );
    let mut mocked = keyed("/orders", "k", "{}");
    let address = SocketAddr::new("192.0.2.1".parse().unwrap(), 1);
    mocked.extensions_mut().insert(MockConnectInfo(address));
    assert!(send(&app, mocked).await.is_replay(), "as a test says it");
    // B139: without connection info nobody is taken for anybody
    assert_eq!(
        send(&app, keyed("/orders", "k", "{}")).await.problem(),
        "urn:idempotency:caller-unidentified"
    );
    assert_eq!(runs.count(), 4);
}

#[tokio::test]
async fn scope_headers_separate_tenants() {
    let runs = Runs::default();
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .scope_headers(["X-Tenant", "api-version"])
        .build()
        .unwrap();
    let app = router(&runs).layer(Extension(runtime));
    let of = |tenant: &str| with(keyed("/orders", "k", "{}"), "x-tenant", tenant);
    let one = send(&app, of("1")).await;
    assert!(!send(&app, of("2")).await.is_replay());
    assert!(!send(&app, keyed("/orders", "k", "{}")).await.is_replay());
    assert!(
        !send(&app, with(of("1"), "api-version", "2"))
            .await
            .is_replay()
    );
    assert_eq!(send(&app, of("1")).await.body, one.body);
    assert_eq!(runs.count(), 4);
}

#[tokio::test]
async fn b138_nested_routers_and_fallbacks_have_scopes_of_their_own() {
    let runs = Runs::default();
    let api = || {
        Router::new()
            .route("/orders/{id}", post(create))
            .route("/put", put(create))
            .with_state::<()>(runs.clone())
    };
    let router = Router::new()
        .nest("/v1", api())
        .nest("/v2", api())
        .nest_service("/v3", api())
        .merge(
            Router::new()
                .route("/merged", post(create))
                .with_state(runs.clone()),
        )
        .fallback_service(Router::new().fallback(create).with_state(runs.clone()));
    let app = Embedded::shared().on(router);
    let paths = [
        "/v1/orders/1",
        "/v2/orders/1",
        "/v3/orders/1",
        "/merged",
        "/lost",
        "/lost/too",
    ];
    for path in paths {
        assert_eq!(
            send(&app, keyed(path, "k", "x")).await.outcome(),
            (200, false),
            "{path}"
        );
    }
    for path in paths {
        assert_eq!(
            send(&app, keyed(path, "k", "x")).await.outcome(),
            (200, true),
            "{path}"
        );
    }
    // one route, another path: the key belongs to the other request
    assert_eq!(
        send(&app, keyed("/v1/orders/2", "k", "x")).await.status,
        422
    );
    assert_eq!(runs.count(), paths.len());
}

#[tokio::test]
async fn b139_a_server_without_connection_info_refuses_and_says_so() {
    let runs = Runs::default();
    let app = Embedded::with(Caller::peer(), Settings::default()).on(router(&runs));
    let reply = send(&app, keyed("/orders", "k", "{}")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.problem().as_str()),
        (500, "urn:idempotency:caller-unidentified")
    );
    let plain = post_to("/orders").body(Body::from("{}")).unwrap();
    assert_eq!(
        send(&app, plain).await.status,
        200,
        "without a key it is not asked"
    );
}
