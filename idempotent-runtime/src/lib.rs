//! Idempotency for [Axum](axum) in one attribute: a client's retry never writes twice.
//!
//! A client that got no answer cannot know whether its request took effect. With [`#[idempotent]`](macro@idempotent)
//! above the handler it sends the request again, with the same `Idempotency-Key`, and gets the
//! answer of the first attempt, byte for byte; the handler does not run again.
//!
//! ```
//! use axum::{Extension, Json, Router, body::Body, http::{Request, StatusCode, header}, routing::post};
//! use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
//! use serde::{Deserialize, Serialize};
//! use tower::ServiceExt;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     item: String,
//! }
//!
//! #[idempotent]
//! async fn create_order(Json(order): Json<Order>) -> (StatusCode, Json<Order>) {
//!     // .. the write that must not happen twice, then:
//!     (StatusCode::CREATED, Json(order))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In a service: `Caller::subject().or(Caller::peer())`, and `.install()?` in place of the layer.
//! let runtime = IdempotencyRuntime::embedded(Caller::shared());
//! let app = Router::new().route("/orders", post(create_order)).layer(Extension(runtime));
//!
//! let attempt = || {
//!     Request::post("/orders")
//!         .header("Idempotency-Key", r#""9b1deb4d""#)
//!         .header(header::CONTENT_TYPE, "application/json")
//!         .body(Body::from(r#"{"item":"tea"}"#))
//! };
//! let first = app.clone().oneshot(attempt()?).await?;
//! let again = app.oneshot(attempt()?).await?;
//!
//! assert_eq!(first.status(), StatusCode::CREATED);
//! assert!(!first.headers().contains_key("x-idempotent-replay"));
//! assert_eq!(again.status(), StatusCode::CREATED);
//! assert_eq!(again.headers()["x-idempotent-replay"], "true");
//! # Ok(())
//! # }
//! ```
//!
//! # The key
//!
//! The client makes one key for each thing that it wants done, and sends it with every attempt:
//! `Idempotency-Key: "9b1deb4d"`, with or without the quotes. Without a key, and for methods that
//! change nothing, the handler runs as if the attribute were not there; `#[idempotent(required)]`
//! refuses such a request instead. See [`IdempotencyKey`] and, for keys of calls to other services,
//! [`IdempotencyContext`].
//!
//! # The caller
//!
//! A key belongs to whoever sent it: two callers with the same key never see each other's answers.
//! How callers are told apart is chosen in the builder and never guessed. See [`Caller`] and
//! [`Subject`].
//!
//! # The fingerprint
//!
//! A key stands for one request. A digest of path, query and body is kept with it, from the moment
//! the first attempt begins; the same key with another request is refused with 422. Bodies are
//! compared byte for byte, but for what `ignore` leaves out. See [`store::Fingerprint`].
//!
//! # What is stored
//!
//! Status, headers and body of a 2xx, for the retention; after anything else the key is free again
//! and a retry runs. Which responses count is [`Builder::verdict`]'s to change. Left out are
//! `Set-Cookie`, `WWW-Authenticate`, `Date` and what belongs to one connection; what outer layers
//! add is no part of it, nor are response extensions. A response that is too large or has no known
//! length goes to the first client only; a duplicate is refused with 409, and the handler does not
//! run again. See [`store::Record`].
//!
//! # The run
//!
//! The handler's own extractors come first, on every attempt: whom they reject never sees a
//! replay. A run goes to its end even if its client has hung up, in a task of its own and without
//! the request's task-locals. A panic frees the key. At shutdown, wait for the runs that have no client any
//! more. See [`IdempotencyRuntime::drain`].
//!
//! # Waiting
//!
//! A duplicate of a request that still runs waits for its answer, up to `wait`, and then is refused
//! with 409 and `Retry-After: 1`. See [`Settings::wait`] and [`Settings::max_waiters_per_key`].
//!
//! # Stores
//!
//! A store keeps claims and records. [`MemoryStore`] does so in the process, bounded by bytes: it is
//! right for one replica, and forgets at a restart. `RedisStore` (feature `redis`) is shared by
//! replicas. [`LockedStore`](store::LockedStore) makes one of a cache that you have and a lock. A
//! store of your own is one trait of four atomic steps. See [`store::Store`].
//!
//! When a store fails before the handler has run, the handler runs without the guarantee, or the
//! request is refused. See [`OnStoreFailure`]. A store that is down is not asked again before it
//! works; what handlers did meanwhile it is told then. See [`IdempotencyRuntime::health`].
//!
//! A claim in a shared store has a lease, renewed while the handler runs. Where its process dies the
//! key is free after the lease, and a retry runs; or is refused, see [`OnLostRun`].
//!
//! # Locks
//!
//! Mutual exclusion on a key, across replicas or in one process, is usable on its own. See [`lock`].
//!
//! # Settings
//!
//! Every number has a default and bounds, and can be read from a configuration file. See
//! [`Settings`].
//!
//! # Errors
//!
//! What clients see is a problem document (RFC 9457) whose `type` is one of these after
//! `urn:idempotency:`. Retry those with `Retry-After`; the others say what to change.
//!
//! | type | status | `Retry-After` |
//! |---|---|---|
//! | `key-missing`, `key-malformed` | 400 | |
//! | `key-reused` | 422 | |
//! | `in-flight` | 409 | 1 |
//! | `response-unavailable`, `outcome-unknown` | 409 | |
//! | `caller-unidentified`, `runtime-missing` | 500 | |
//! | `store-unavailable`, `overloaded` | 503 | 1 |
//!
//! The prefix can lead to documentation of your own: see [`Builder::problem_base`]. What fails while
//! a runtime is built, installed or drained is an [`Error`].
//!
//! # Metrics
//!
//! `idempotency.executed`, `.replayed`, `.conflict`, `.degraded`, `.lease_lost`, `.double_effect`, `.unreplayable`,
//! `.evicted`, `.wait`, `.in_flight`, `.stored_bytes` and `.effective_retention`, through the facade
//! [`metrics`](https://docs.rs/metrics). Alert on `double_effect`, `lease_lost` and `degraded`. Install the
//! recorder before the runtime, which tells it units and help texts: see [`Builder::build`].
//!
//! # Testing
//!
//! A handler stays a function: `create_order(Json(order).into()).original().await` runs what you
//! wrote. See [`Run::original`]. The feature `testing` has the contract that defines a store, and
//! one that fails on demand.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `redis` | `RedisStore`, `RedisLock`, `RedisCache`: Redis or Valkey, one server, Sentinel or a cluster |
//! | `redis-rustls` | TLS for it, by rustls and with the operating system's certificates |
//! | `testing` | the module `testing`: the contract suite that defines a store, and a store that fails on demand |
//! | `typed-routing` | `#[idempotent]` on handlers routed by `axum_extra::routing::TypedPath` |

#[expect(
    unused_extern_crates,
    reason = "the attribute names this crate, in its own tests too"
)]
extern crate self as idempotent_runtime;

mod handler;
mod runtime;

mod engine;

#[cfg(feature = "testing")]
pub mod testing;

pub mod store;

pub mod lock;

#[cfg(feature = "redis")]
mod connection;

mod caller;
mod record;

mod key;

mod fingerprint;

mod settings;

mod shared;

mod metrics;

mod step;

mod error;

mod clock;

pub use idempotent_macros::{idempotent, non_idempotent};

/// The client whose connections [`RedisStore::from_connection`] takes.
#[cfg(feature = "redis")]
pub use redis;

#[cfg(feature = "redis")]
pub use self::store::RedisStore;
pub use self::{
    caller::{Caller, Subject},
    engine::{Health, StoreHealth},
    error::{Error, ErrorKind},
    handler::{IdempotencyContext, Idempotent, Run},
    key::{IdempotencyKey, StorageKey},
    runtime::{Builder, IdempotencyRuntime, Verdict},
    settings::{OnLostRun, OnStoreFailure, Settings},
    store::MemoryStore,
};

/// What the expansion of the attributes calls. Not for use by hand, and not covered by semver.
#[doc(hidden)]
pub mod __private {
    pub use core::time::Duration;

    pub use crate::handler::{
        NoArgs, Options, Via,
        check::{self, subject},
    };
}
