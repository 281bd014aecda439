//! The attributes of `idempotent-runtime`.
