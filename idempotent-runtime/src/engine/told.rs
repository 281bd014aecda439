//! What the log says of a request: its storage key and its handler, never the client's own words.

use std::error::Error;

use crate::{
    error::StoreError,
    key::StorageKey,
    metrics::{self, Operation},
    store::CompleteOutcome,
};

/// Who a log line is about.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) key: StorageKey,
    pub(super) handler: &'static str,
}

impl Told {
    /// Counts and logs a command that the store failed to carry out; `so` says what follows.
    pub(super) fn degraded(self, operation: Operation, error: &StoreError, so: &str) {
        metrics::degraded(operation);
        tracing::warn!(
            key = %self.key,
            handler = self.handler,
            operation = operation.as_str(),
            error = error as &(dyn Error + 'static),
            "the idempotency store failed: {so}"
        );
    }

    /// A success that is not the only one is counted and logged.
    pub(super) fn completed(self, outcome: &CompleteOutcome) {
        let beside = match outcome {
            CompleteOutcome::Stored => return,
            CompleteOutcome::Displaced => "while another run of the same key was in progress",
            CompleteOutcome::Completed(_) => "although another run of the same key is recorded",
        };
        metrics::double_effect();
        tracing::error!(
            key = %self.key,
            handler = self.handler,
            "a handler took effect {beside}: look for a duplicate write"
        );
    }

    /// Counts and logs that a run is not the only one that may run.
    pub(super) fn lease_lost(self, how: &str) {
        metrics::lease_lost();
        tracing::error!(
            key = %self.key,
            handler = self.handler,
            "the claim of a running handler is lost, and a retry may run beside it: {how}; look for a process that stood still or was cut off, or raise `lease`"
        );
    }

    /// So much waits for the store that nothing could be kept of another run.
    pub(super) fn backlog(self) {
        tracing::warn!(
            key = %self.key,
            handler = self.handler,
            "refused with 503, because too many reports wait for the idempotency store: see why it does not take them"
        );
    }

    /// A claim stands again that had gone.
    pub(super) fn restored(self) {
        tracing::warn!(
            key = %self.key,
            handler = self.handler,
            "the claim of a running handler had gone from the store and was put back: the store lost data (a restart, an eviction, a failover), or was out of reach for longer than `lease`"
        );
    }

    /// A report has outlived its retention.
    pub(super) fn gave_up(self) {
        tracing::error!(
            key = %self.key,
            handler = self.handler,
            "the store could not be told of a handler's success within its retention, and a retry runs again: look the effect up"
        );
    }

    /// What stands at the key is of a kind that this version cannot compare.
    pub(super) fn incomparable(self, found: u8, expected: u8) {
        tracing::error!(
            key = %self.key,
            handler = self.handler,
            found,
            expected,
            "the request recorded under this key cannot be compared, because its fingerprint is of another scheme: refused with 503 until the record has expired"
        );
    }
}
