//! Axum in, Axum out: what runs around a handler with `#[idempotent]`.
//!
//! The path of a request: [`Idempotent`] extracts the last argument and keeps the body
//! ([`extract`], [`body`]); [`Run`] binds the attribute's options and begins ([`run`]); the key,
//! the caller and the fingerprint become a request for the engine ([`call`]); it is claimed, and
//! the handler's response is captured or a stored one replayed ([`serve`], [`capture`],
//! [`replay`], [`problem`]).

mod run;

#[cfg(feature = "typed-routing")]
mod typed;

mod extract;

mod serve;

mod call;

mod capture;

mod body;

mod replay;

mod problem;

mod context;

mod limit;

mod options;

#[doc(hidden)]
pub mod check;

pub use self::{
    context::IdempotencyContext,
    extract::{Idempotent, NoArgs, Via},
    options::Options,
    run::Run,
};
