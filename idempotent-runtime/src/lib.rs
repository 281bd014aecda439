//! Idempotency for Axum in one attribute.

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

mod caller;
mod record;

mod key;

mod fingerprint;

mod settings;

mod shared;

mod metrics;

mod error;

mod clock;

pub use idempotent_macros::{idempotent, non_idempotent};

pub use self::{
    caller::{Caller, Subject},
    error::{Error, ErrorKind},
    handler::{IdempotencyContext, Idempotent, Run},
    key::{IdempotencyKey, StorageKey},
    runtime::{Builder, IdempotencyRuntime, Verdict},
    settings::{OnStoreFailure, Settings},
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
