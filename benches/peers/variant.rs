//! The handler bare, under this library, and under each peer, set up as its manual says.

use std::sync::Arc;

use axum::{Extension, Router, routing::post};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use idempotent::{memory::MemoryStore, middleware::IdempotencyLayer, valkey::ValkeyStore};
use idempotent_runtime::{Caller, IdempotencyRuntime, RedisStore, idempotent};
use ruts::{CookieOptions, SessionLayer, store::moka::MokaStore};
use tower_cookies::CookieManagerLayer;

use crate::service::{self, Runs};

/// Where responses are kept; only variants of the same kind are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nowhere,
    InMemory,
    InRedis,
}

pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) kept: Kept,
    /// Whether this is the library that the others are peers of.
    pub(crate) ours: bool,
    /// What tells that a response is a replay.
    pub(crate) replay_header: &'static str,
    /// Whether requests need a session.
    pub(crate) session: bool,
    pub(crate) app: Router,
    pub(crate) runs: Runs,
}

#[idempotent]
async fn guarded(
    runs: axum::extract::State<Runs>,
    order: axum::Json<service::CreateOrder>,
) -> (axum::http::StatusCode, axum::Json<service::Order>) {
    service::create_order(runs, order).await
}

/// All of them. The first one is bare.
pub(crate) async fn all(redis: &str) -> Vec<Variant> {
    let bare = || Router::new().route("/orders", post(service::create_order));
    let ours = || Router::new().route("/orders", post(guarded));
    IdempotencyRuntime::embedded(Caller::authorization())
        .install()
        .expect("none is installed yet");
    let redis_store = RedisStore::connect(redis, "peers")
        .await
        .expect("the server can be used");
    let in_redis = IdempotencyRuntime::builder()
        .caller(Caller::authorization())
        .store(redis_store)
        .build()
        .expect("the settings are valid");
    let theirs = MemoryStore::builder().try_build().expect("a Tokio runtime");
    let valkey = ValkeyStore::with_url(redis)
        .try_build()
        .await
        .expect("the server can be used");
    vec![
        variant("bare", Kept::Nowhere, "", |_| bare()),
        variant("ours_memory", Kept::InMemory, OURS, |_| ours()),
        variant("ours_redis", Kept::InRedis, OURS, |_| {
            ours().layer(Extension(in_redis))
        }),
        variant(
            "axum-idempotent_memory",
            Kept::InMemory,
            "idempotency-replayed",
            |variant| {
                variant.session = true;
                in_sessions(bare())
            },
        ),
        variant(
            "idempotent_memory",
            Kept::InMemory,
            "idempotent-replayed",
            |_| bare().layer(IdempotencyLayer::new(theirs)),
        ),
        variant(
            "idempotent_redis",
            Kept::InRedis,
            "idempotent-replayed",
            |_| bare().layer(IdempotencyLayer::new(valkey)),
        ),
    ]
}

const OURS: &str = "x-idempotent-replay";

fn variant(
    name: &'static str,
    kept: Kept,
    replay_header: &'static str,
    app: impl FnOnce(&mut Variant) -> Router<Runs>,
) -> Variant {
    let mut variant = Variant {
        name,
        kept,
        ours: replay_header == OURS,
        replay_header,
        session: false,
        app: Router::new(),
        runs: Runs::default(),
    };
    variant.app = app(&mut variant).with_state(Arc::clone(&variant.runs));
    variant
}

fn in_sessions(app: Router<Runs>) -> Router<Runs> {
    // More sessions than the default of 10 000, so that none is forgotten during the run.
    let store = MokaStore::builder().max_capacity(1 << 24).build();
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(Some("idempotency-key"), false)
        .expire_after(24 * 60 * 60);
    let cookie = CookieOptions::build().name("session");
    app.layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(Arc::new(store)).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}
