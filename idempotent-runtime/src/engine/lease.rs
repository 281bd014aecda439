//! The right to run, and the report that is owed for it.
//!
//! A lease reports once: after a success only [`Lease::complete`], after a failure only
//! [`Lease::release`]. What drops it earlier (a panic, a runtime that shuts down) reports the same.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header, response::Parts};
use tokio::runtime::Handle;

use super::{Request, in_time, told::Told};
use crate::{
    error::StoreError,
    metrics::Operation,
    record::{Record, RecordBody},
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

    /// The handler has answered: unless it [took no effect](Self::failed), its claim is not
    /// released any more.
    pub(crate) fn answered(&mut self, response: &Parts) {
        let location = response.headers.get(header::LOCATION).cloned();
        self.report = Report::Complete {
            status: response.status,
            location,
        };
    }

    /// The answer says that the handler took no effect.
    pub(crate) fn failed(&mut self) {
        self.report = Report::Release;
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
        let told = self.request.told();
        match outcome {
            Ok(outcome) => {
                told.completed(&outcome);
                match outcome {
                    CompleteOutcome::Stored | CompleteOutcome::Displaced => Finish::Own,
                    CompleteOutcome::Completed(record) => self.request.answer_of(record),
                }
            }
            Err(error) => {
                let so = "its response is not recorded: a retry waits, or runs again once the claim has gone";
                told.degraded(Operation::Complete, &error, so);
                Finish::Own
            }
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
            Err(error) => {
                let so = "a retry waits until the claim has gone";
                self.request.told().degraded(Operation::Release, &error, so);
                Finish::Own
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.report, Report::Sent) {
            Report::Sent => {}
            Report::Release => self.request.release_in_background(),
            Report::Complete { status, location } => {
                let record = Record::marker(self.request.fingerprint, status, location);
                let completed = self.request.complete(Arc::new(record));
                in_background(
                    &self.request,
                    Operation::Complete,
                    completed,
                    Told::completed,
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
    pub(super) fn release_in_background(&self) {
        in_background(self, Operation::Release, self.release(), |_, _| {});
    }

    /// Another run's record answers this request if it is the same request, and if there is a
    /// response in it.
    fn answer_of(&self, record: Arc<Record>) -> Finish {
        let answers = matches!(record.body, RecordBody::Stored(_));
        if record.fingerprint == self.fingerprint && answers {
            Finish::Replay(record)
        } else {
            Finish::Own
        }
    }

    /// Who log lines are about.
    pub(super) fn told(&self) -> Told {
        Told {
            key: self.key,
            handler: self.policy.handler,
        }
    }
}

/// Carries out a command that nobody waits for.
fn in_background<T: Send + 'static>(
    request: &Request,
    operation: Operation,
    step: Step<Result<T, StoreError>>,
    done: fn(Told, &T),
) {
    let told = request.told();
    let report = move |outcome: Result<T, StoreError>| match outcome {
        Ok(outcome) => done(told, &outcome),
        Err(error) => told.degraded(
            operation,
            &error,
            "the key stays taken until its lease is over",
        ),
    };
    match (step, Handle::try_current()) {
        (Step::Now(outcome), _) => report(outcome),
        (Step::Later(command), Ok(handle)) => {
            let under_way = request.engine.under_way();
            drop(handle.spawn(async move {
                let limit = under_way.0.store_timeout;
                report(in_time(limit, Step::Later(command)).await);
            }));
        }
        (Step::Later(_), Err(_)) => {
            let error =
                StoreError::unavailable("no Tokio runtime is left to carry the command out");
            report(Err(error));
        }
    }
}
