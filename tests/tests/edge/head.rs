//! Keys, callers and scopes.

use std::net::SocketAddr;

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State, connect_info::MockConnectInfo},
    http::Uri,
    middleware::map_request,
    routing::post,
};
use idempotent_runtime::{Caller, IdempotencyRuntime, Settings, idempotent};
use idempotent_tests::http::{Embedded, Runs, keyed, send};
use tower::Layer;

#[idempotent]
async fn create(State(runs): State<Runs>, _body: String) -> String {
    runs.add().to_string()
}

fn router(runs: &Runs) -> Router {
    Router::new()
        .route("/", post(create))
        .route("/tickets/{id}/close", post(create))
        .with_state(runs.clone())
}

/// A list is refused, and so are bytes outside of ASCII, also behind a parameter.
#[tokio::test]
async fn parameters_hide_no_malformed_key() {
    let runs = Runs::default();
    let app = Embedded::shared().on(router(&runs));
    let mut taken = Vec::new();
    for key in [
        b"\"a\";p=1, \"b\"".as_slice(),
        b"a;p, b",
        b"a;p=\xc3\xa9",
        b"\"a\";p=\xff",
    ] {
        let request = Request::post("/")
            .header("idempotency-key", key)
            .body(Body::empty())
            .unwrap();
        if send(&app, request).await.status != 400 {
            taken.push(String::from_utf8_lossy(key).into_owned());
        }
    }
    assert_eq!(taken, [""; 0]);
    assert_eq!(runs.count(), 0);
}

/// Over HTTP/2 the host stands in the URI, and there is no `Host` header.
#[tokio::test]
async fn a_host_in_the_scope_holds_over_http_2() {
    let runs = Runs::default();
    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::shared())
        .scope_headers(["host"])
        .build()
        .unwrap();
    let app = router(&runs).layer(Extension(runtime));
    let one = send(&app, keyed("https://a.example/", "k", "")).await;
    let other = send(&app, keyed("https://b.example/", "k", "")).await;
    assert_eq!(one.outcome(), (200, false));
    assert_eq!(other.outcome(), (200, false), "another tenant's response");
}

/// Axum's own stand-in for the peer's address in tests.
#[tokio::test]
async fn a_mocked_peer_is_a_peer() {
    let runs = Runs::default();
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let app = Embedded::with(Caller::peer(), Settings::default())
        .on(router(&runs))
        .layer(MockConnectInfo(peer));
    let reply = send(&app, keyed("/", "k", "")).await;
    assert_eq!(reply.outcome(), (200, false), "{}", reply.text());
}

/// Whose credentials a header carries does not depend on the order of the builder's calls.
#[tokio::test]
async fn credential_headers_hold_for_a_peer_that_is_added_later() {
    let runs = Runs::default();
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let caller = Caller::subject()
        .credential_headers(["x-token"])
        .or(Caller::peer());
    let app = Embedded::with(caller, Settings::default()).on(router(&runs));
    let mut request = keyed("/", "k", "");
    drop(
        request
            .headers_mut()
            .insert("x-token", "alice".parse().unwrap()),
    );
    let _ = request
        .extensions_mut()
        .insert(axum::extract::ConnectInfo(peer));
    let reply = send(&app, request).await;
    assert_eq!(
        reply.status, 500,
        "a credential's owner is no anonymous peer"
    );
}

/// A layer of an outer router gives the request another path. What the handler sees is what the
/// request is.
#[tokio::test]
async fn a_path_that_a_layer_has_rewritten_is_part_of_the_request() {
    let runs = Runs::default();
    let rewrite = map_request(async |mut request: Request| {
        let ticket = request.headers()["x-ticket"].to_str().unwrap();
        *request.uri_mut() = format!("/tickets/{ticket}/close").parse::<Uri>().unwrap();
        request
    });
    let inner = rewrite.layer(router(&runs));
    let app = Embedded::shared().on(Router::new().fallback_service(inner));
    let close = |ticket: &str| {
        let mut request = keyed("/close", "k", "");
        drop(
            request
                .headers_mut()
                .insert("x-ticket", ticket.parse().unwrap()),
        );
        request
    };
    assert_eq!(send(&app, close("1")).await.outcome(), (200, false));
    let other = send(&app, close("2")).await;
    assert_eq!(other.status, 422, "the response to another ticket");
}

/// A proxy may send the absolute form, HTTP/2 always does: it is the same request.
#[tokio::test]
async fn the_form_of_the_target_does_not_matter() {
    let runs = Runs::default();
    let app = Embedded::shared().on(router(&runs));
    for (path, replay) in [
        ("/", false),
        ("http://a.example/", true),
        ("https://b.example", true),
    ] {
        assert_eq!(
            send(&app, keyed(path, "k", "")).await.outcome(),
            (200, replay),
            "{path}"
        );
    }
}
