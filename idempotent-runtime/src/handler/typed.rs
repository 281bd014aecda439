//! `axum_extra::routing::TypedPath` for a wrapped argument.
//!
//! `typed_post(handler)` takes the route from the handler's first argument, which is wrapped where it is the only one.

use std::fmt;

use axum_extra::routing::TypedPath;

use super::Idempotent;

impl<P: TypedPath> TypedPath for Idempotent<P> {
    const PATH: &'static str = P::PATH;
}

impl<P: TypedPath> fmt::Display for Idempotent<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
