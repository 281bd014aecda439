//! The right to run, and the report that is owed for it.
//!
//! A lease reports once: after a success only [`Lease::complete`], after a failure only
//! [`Lease::release`]. What drops it earlier (a panic, a runtime that shuts down) reports the same.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header, response::Parts};
use tokio::runtime::Handle;

use super::{Request, in_time};
use crate::{
    error::StoreError,
    metrics::{self, Operation},
    record::Record,
    store::{CompleteOutcome, ReleaseOutcome, Step},
};

/// A run in progress.
pub(crate) struct Lease {
    request: Box<Request>,
    guarded: bool,
    report: Report,
}

/// What is owed to the store.
enum Report {
    /// The handler has not taken effect.
    Release,
    /// It has. Without its response, this much is left to tell.
    Complete {
        status: StatusCode,
        location: Option<HeaderValue>,
    },
    Sent,
}

/// Which response answers the request.
pub(crate) enum Finish {
    Own,
    /// That of another run, which came first.
    Replay(Arc<Record>),
}

impl Lease {
    /// A run that may begin; it occupies a place that the caller has taken.
    pub(super) fn new(request: Box<Request>, guarded: bool) -> Self {
        request.engine.hot.run_begins();
        Self {
            request,
            guarded,
            report: Report::Release,
        }
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Whether a claim stands in the store.
    pub(crate) fn guarded(&self) -> bool {
        self.guarded
    }

    /// The handler has taken effect: from here on the claim is never released.
    pub(crate) fn succeeded(&mut self, response: &Parts) {
        let location = response.headers.get(header::LOCATION).cloned();
        self.report = Report::Complete {
            status: response.status,
            location,
        };
    }

    /// Reports the success. The first one of the key is the answer to all.
    pub(crate) fn complete(mut self, record: Record) -> Step<Finish> {
        self.report = Report::Sent;
        match self.request.complete(Arc::new(record)) {
            Step::Now(outcome) => Step::Now(self.completed(outcome)),
            Step::Later(command) => Step::later(async move {
                let limit = self.request.engine.store_timeout;
                self.completed(in_time(limit, Step::Later(command)).await)
            }),
        }
    }

    fn completed(&self, outcome: Result<CompleteOutcome, StoreError>) -> Finish {
        match outcome {
            Ok(CompleteOutcome::Stored) => Finish::Own,
            Ok(CompleteOutcome::Displaced) => {
                self.request
                    .double_effect("its claim had lapsed and another run had begun");
                Finish::Own
            }
            Ok(CompleteOutcome::Completed(record)) => {
                self.request
                    .double_effect("another run had been recorded before it");
                self.request.answer_of(record)
            }
            Err(error) => self.request.failed(Operation::Complete, &error),
        }
    }

    /// Reports that the handler took no effect, so that a retry runs.
    pub(crate) fn release(mut self) -> Step<Finish> {
        self.report = Report::Sent;
        match self.request.release() {
            Step::Now(outcome) => Step::Now(self.released(outcome)),
            Step::Later(command) => Step::later(async move {
                let limit = self.request.engine.store_timeout;
                self.released(in_time(limit, Step::Later(command)).await)
            }),
        }
    }

    fn released(&self, outcome: Result<ReleaseOutcome, StoreError>) -> Finish {
        match outcome {
            Ok(ReleaseOutcome::Released | ReleaseOutcome::NotHeld) => Finish::Own,
            Ok(ReleaseOutcome::Completed(record)) => self.request.answer_of(record),
            Err(error) => self.request.failed(Operation::Release, &error),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.report, Report::Sent) {
            Report::Sent => {}
            Report::Release => self.request.release_behind(),
            Report::Complete { status, location } => {
                let record = Record::marker(self.request.fingerprint, status, location);
                behind(
                    &self.request,
                    Operation::Complete,
                    self.request.complete(Arc::new(record)),
                );
            }
        }
        self.request.engine.hot.run_ends();
        self.request.engine.capacity.give_back();
    }
}

impl Request {
    fn complete(&self, record: Arc<Record>) -> Step<Result<CompleteOutcome, StoreError>> {
        self.engine
            .store
            .complete(&self.key, self.token, record, self.policy.retention)
    }

    fn release(&self) -> Step<Result<ReleaseOutcome, StoreError>> {
        self.engine.store.release(&self.key, self.token)
    }

    /// Releases without waiting for it.
    pub(super) fn release_behind(&self) {
        behind(self, Operation::Release, self.release());
    }

    /// Another run's record answers this request if it is the same request.
    fn answer_of(&self, record: Arc<Record>) -> Finish {
        if record.fingerprint == self.fingerprint {
            Finish::Replay(record)
        } else {
            Finish::Own
        }
    }

    fn double_effect(&self, how: &str) {
        metrics::double_effect();
        tracing::error!(key = %self.key, "a handler took effect twice: {how}");
    }

    fn failed(&self, operation: Operation, error: &StoreError) -> Finish {
        self.degraded(operation, error);
        Finish::Own
    }

    /// Counts and logs a command that the store failed to carry out.
    pub(super) fn degraded(&self, operation: Operation, error: &StoreError) {
        metrics::degraded(operation);
        tracing::warn!(key = %self.key, operation = operation.as_str(), %error, "the idempotency store failed");
    }
}

/// Carries out a command that nobody waits for.
fn behind<T: Send + 'static>(
    request: &Request,
    operation: Operation,
    step: Step<Result<T, StoreError>>,
) {
    match step {
        Step::Now(Ok(_)) => {}
        Step::Now(Err(error)) => request.degraded(operation, &error),
        Step::Later(command) => {
            let (key, limit) = (request.key, request.engine.store_timeout);
            let Ok(handle) = Handle::try_current() else {
                return;
            };
            drop(handle.spawn(async move {
                if let Err(error) = in_time(limit, Step::Later(command)).await {
                    metrics::degraded(operation);
                    tracing::warn!(%key, operation = operation.as_str(), %error, "the idempotency store failed");
                }
            }));
        }
    }
}
