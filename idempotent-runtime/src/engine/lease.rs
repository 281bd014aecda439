//! The right to run, and the report that is owed for it.
//!
//! A lease reports one thing: after a success only [`Lease::complete`], after a failure only
//! [`Lease::release`]. What drops it earlier (a panic, a runtime that shuts down) reports the same,
//! and again if a report was on its way.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header, response::Parts};

use super::{
    Answer,
    register::Place,
    renewal::Renewal,
    report::{Owed, Report},
    request::Request,
};
use crate::{
    clock::Instant,
    metrics::Operation,
    record::{Record, RecordBody},
    store::{CompleteOutcome, ReleaseOutcome, Step},
};

/// A run in progress.
pub(crate) struct Lease {
    request: Arc<Request>,
    /// Held while it is the one of this process that others follow.
    place: Option<Place>,
    /// Renewed while it lasts.
    renewal: Option<Arc<Renewal>>,
    guarded: bool,
    /// Whether a claim may stand that went out before the run.
    claimed: bool,
    due: Due,
}

/// What is owed to the store.
enum Due {
    /// The handler has not taken effect.
    Release,
    /// It has. Without its response, this much is left to tell.
    Marker {
        status: StatusCode,
        location: Option<HeaderValue>,
    },
    /// The record is on its way.
    Record(Arc<Record>),
    Nothing,
}

/// Which response answers the request.
pub(crate) enum Finish {
    Own,
    /// That of another run, which came first.
    Replay(Arc<Record>),
}

impl Lease {
    /// A run that may begin, guarded by a claim that went out at some time if there is one; it
    /// occupies a place that the caller has taken.
    pub(super) fn new(
        request: Arc<Request>,
        place: Option<Place>,
        guarded: bool,
        asked: Option<Instant>,
        claimed: bool,
    ) -> Self {
        request.engine.hot.run_begins();
        if let Some(place) = &place {
            place.stands(false);
        }
        Self {
            renewal: Renewal::begin(&request, asked),
            request,
            place,
            guarded,
            claimed,
            due: Due::Release,
        }
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Whether a claim stands in the store.
    pub(crate) fn guarded(&self) -> bool {
        self.guarded
    }

    /// What knows whether it still does, where it can be lost.
    pub(crate) fn renewal(&self) -> Option<Arc<Renewal>> {
        self.renewal.clone()
    }

    /// The handler has answered: unless it [took no effect](Self::failed), its claim is not
    /// released any more.
    pub(crate) fn answered(&mut self, response: &Parts) {
        let location = response.headers.get(header::LOCATION).cloned();
        self.due = Due::Marker {
            status: response.status,
            location,
        };
    }

    /// The answer says that the handler took no effect.
    pub(crate) fn failed(&mut self) {
        self.due = Due::Release;
    }

    /// Reports the success. The first one of the key is the answer to all.
    pub(crate) fn complete(mut self, record: Record) -> Step<Finish> {
        let record = Arc::new(record);
        // Kept for who follows, and in case that it must be reported again.
        self.due = match self.request.engine.remote {
            Some(_) => Due::Record(Arc::clone(&record)),
            None => Due::Nothing,
        };
        let ended = self.ended();
        self.report(
            ended,
            move |request| request.complete(record, request.policy.retention),
            Self::completed,
        )
    }

    fn completed(&mut self, outcome: Answer<CompleteOutcome>) -> Finish {
        let kept = match self.settled() {
            Due::Record(record) => Some(record),
            Due::Release | Due::Marker { .. } | Due::Nothing => None,
        };
        let told = self.request.told();
        match outcome {
            Ok(outcome) => {
                told.completed(&outcome);
                match outcome {
                    CompleteOutcome::Stored | CompleteOutcome::Displaced => {
                        self.leave(kept);
                        Finish::Own
                    }
                    CompleteOutcome::Completed(record) => {
                        self.leave(Some(Arc::clone(&record)));
                        self.answer_of(record)
                    }
                }
            }
            Err(error) => {
                let so = "its response is answered all the same, and reported again";
                told.degraded(Operation::Complete, &error, so);
                if let Some(record) = kept {
                    self.later(Owed::Complete(record));
                }
                Finish::Own
            }
        }
    }

    /// Reports that the handler took no effect, so that a retry runs.
    pub(crate) fn release(self) -> Step<Finish> {
        // From here on no renewal goes out that would have to be taken back.
        let ended = self.ended();
        if !self.may_stand() {
            return Step::Now(Finish::Own);
        }
        self.report(ended, Request::release, Self::released)
    }

    fn released(&mut self, outcome: Answer<ReleaseOutcome>) -> Finish {
        drop(self.settled());
        match outcome {
            Ok(ReleaseOutcome::Released | ReleaseOutcome::NotHeld) => Finish::Own,
            Ok(ReleaseOutcome::Completed(record)) => {
                self.leave(Some(Arc::clone(&record)));
                self.answer_of(record)
            }
            Err(error) => {
                let so = "a retry waits until the claim has gone";
                self.request.told().degraded(Operation::Release, &error, so);
                self.later(Owed::Release);
                Finish::Own
            }
        }
    }

    /// Sends a report once no renewal is under way, and deals with the answer.
    fn report<T: Send + 'static>(
        mut self,
        ended: Step<()>,
        send: impl FnOnce(&Request) -> Step<Answer<T>> + Send + 'static,
        done: impl FnOnce(&mut Self, Answer<T>) -> Finish + Send + 'static,
    ) -> Step<Finish> {
        let step = match ended {
            Step::Now(()) => send(&self.request),
            Step::Later(ended) => {
                return Step::later(async move {
                    ended.await;
                    let outcome = send(&self.request).answer().await;
                    done(&mut self, outcome)
                });
            }
        };
        match step {
            Step::Now(outcome) => Step::Now(done(&mut self, outcome)),
            Step::Later(command) => Step::later(async move {
                let outcome = command.await;
                done(&mut self, outcome)
            }),
        }
    }

    /// What was owed, once the report of it has been answered.
    fn settled(&mut self) -> Due {
        std::mem::replace(&mut self.due, Due::Nothing)
    }

    /// Ends the renewals.
    fn ended(&self) -> Step<()> {
        self.renewal.as_ref().map_or(Step::Now(()), Renewal::end)
    }

    /// Whether the store may know of a claim of this run.
    fn may_stand(&self) -> bool {
        self.claimed || self.renewal.as_ref().is_some_and(|renewal| renewal.sent())
    }

    /// Others of this process go on, with the record that stands if there is one.
    fn leave(&mut self, record: Option<Arc<Record>>) {
        if let Some(place) = self.place.take() {
            place.leave(record);
        }
    }

    fn later(&mut self, owed: Owed) {
        // After a failure nobody has to wait for the report.
        let place = match owed {
            Owed::Complete(_) => self.place.take(),
            Owed::Release => None,
        };
        Report::later(&self.request, owed, self.renewal.take(), place);
    }

    /// Another run's record answers this request if it is the same request, and if there is a
    /// response in it.
    fn answer_of(&self, record: Arc<Record>) -> Finish {
        let answers = matches!(record.body, RecordBody::Stored(_));
        if record.fingerprint == self.request.fingerprint && answers {
            Finish::Replay(record)
        } else {
            Finish::Own
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // From here on nothing is renewed that is not reported later.
        drop(self.ended());
        match self.settled() {
            Due::Nothing => {}
            Due::Release => {
                if self.may_stand() {
                    self.later(Owed::Release);
                }
            }
            Due::Record(record) => self.later(Owed::Complete(record)),
            Due::Marker { status, location } => {
                let record = Record::marker(self.request.fingerprint, status, location);
                self.later(Owed::Complete(Arc::new(record)));
            }
        }
        self.request.engine.hot.run_ends();
        self.request.engine.capacity.give_back();
    }
}
