//! Idempotency for Axum in one attribute.
