//! Reports that the store has not taken yet. None is given up while the process lives: what a
//! handler has done would be done again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::{
    Answer, Remote, capacity::UnderWay, register::Place, renewal::Renewal, request::Request,
    schedule::Duty,
};
use crate::{
    clock::{self, Instant},
    error::{StoreError, StoreErrorKind},
    metrics::{self, Operation},
    record::{Record, RecordBody},
    store::{BoxFuture, CompleteOutcome, ReleaseOutcome, Step},
};

/// How many bytes of responses wait for the store at most. Over it a report goes on without its
/// response.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// How many bytes of reports wait at most, those without a response included. Over it no handler
/// begins without a claim, since nothing could be kept of it.
const FULL_BYTES: usize = MOST_BYTES / 4 * 5;
/// What a report takes besides its response, its places in the schedule and the register included;
/// measured over 60 000 of them.
const OVERHEAD: usize = 1400;

/// The pauses between two tries of one report.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause where the store answers, and refuses the report.
const LONGEST_REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// How much is waiting.
#[derive(Debug, Default)]
pub(super) struct Reports {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl Reports {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing more can be kept.
    pub(super) fn full(&self) -> bool {
        self.bytes() >= FULL_BYTES
    }

    /// Takes room for a record, or for the note that there was one. How many bytes that is.
    fn keep(&self, record: Arc<Record>) -> (Arc<Record>, usize) {
        let bytes = size(&record);
        let room = |taken| (taken + bytes <= MOST_BYTES).then_some(taken + bytes);
        let (order, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.bytes.fetch_update(order, relaxed, room).is_ok() {
            return (record, bytes);
        }
        let record = match &record.body {
            RecordBody::Unreplayable => record,
            RecordBody::Stored(_) => {
                metrics::unreplayable("backlog");
                Arc::new(record.without_response())
            }
        };
        let bytes = self.charge(size(&record));
        (record, bytes)
    }

    fn charge(&self, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        bytes
    }
}

fn size(record: &Record) -> usize {
    let body = match &record.body {
        RecordBody::Stored(body) => body.len(),
        RecordBody::Unreplayable => 0,
    };
    let one = |(name, value): &(HeaderName, HeaderValue)| name.as_str().len() + value.len();
    body + record.headers.iter().map(one).sum::<usize>() + OVERHEAD
}

/// What the store is to be told.
pub(super) enum Owed {
    /// The handler has taken effect.
    Complete(Arc<Record>),
    /// It has not, or has not run.
    Release,
}

/// A report that is tried until the store has taken it.
pub(super) struct Report {
    request: Arc<Request>,
    owed: Owed,
    renewal: Option<Arc<Renewal>>,
    /// When nobody would be helped by it any more.
    ends: Instant,
    bytes: usize,
    state: Mutex<State>,
    _under_way: UnderWay,
}

struct State {
    pause: Duration,
    place: Option<Place>,
}

impl Report {
    /// Sends a report that nobody waits for, and tries again until the store has taken it.
    pub(super) fn later(
        request: &Arc<Request>,
        owed: Owed,
        renewal: Option<Arc<Renewal>>,
        place: Option<Place>,
    ) {
        let Some(remote) = &request.engine.remote else {
            return Self::now(request, owed);
        };
        let policy = &request.policy;
        let (owed, bytes, lasts) = match owed {
            Owed::Complete(record) => {
                let (record, bytes) = remote.reports.keep(record);
                if let Some(place) = &place {
                    place.answered(Arc::clone(&record));
                }
                (Owed::Complete(record), bytes, policy.retention)
            }
            // By then its claim has gone by itself.
            Owed::Release => {
                let lasts = policy.lease.saturating_add(request.kept());
                (Owed::Release, remote.reports.charge(OVERHEAD), lasts)
            }
        };
        remote.reports.count.fetch_add(1, Ordering::Relaxed);
        let now = clock::now();
        let report = Arc::new(Self {
            owed,
            renewal,
            ends: now + lasts,
            bytes,
            state: Mutex::new(State {
                pause: SHORTEST_PAUSE,
                place,
            }),
            _under_way: request.engine.under_way(),
            request: Arc::clone(request),
        });
        remote.reporting.put(now, report);
    }

    /// Sends it to a store in this process, which answers at once.
    fn now(request: &Request, owed: Owed) {
        match owed {
            Owed::Complete(record) => {
                let step = request.complete(record, request.policy.retention);
                if let Step::Now(Ok(outcome)) = step {
                    request.told().completed(&outcome);
                }
            }
            Owed::Release => drop(request.release()),
        }
    }

    async fn carry(self: Arc<Self>, remote: &Remote) {
        if let Some(renewal) = &self.renewal {
            renewal.end().answer().await;
        }
        let now = clock::now();
        let failed = match &self.owed {
            Owed::Complete(_) if now >= self.ends => {
                self.request.told().gave_up();
                return self.leave(None);
            }
            Owed::Complete(record) => {
                let step = self.request.complete(Arc::clone(record), self.ends - now);
                self.completed(record, step.answer().await)
            }
            // Once at least, however late: its claim may have come as late.
            Owed::Release => self.released(self.request.release().answer().await, now),
        };
        let Some(error) = failed else { return };
        if let (Some(renewal), Owed::Complete(_)) = (&self.renewal, &self.owed) {
            renewal.resume(self.ends);
        }
        let due = clock::now() + self.pause(&error);
        remote.reporting.put(due.min(self.ends), self);
    }

    fn completed(
        &self,
        record: &Arc<Record>,
        answer: Answer<CompleteOutcome>,
    ) -> Option<StoreError> {
        let told = self.request.told();
        match answer {
            Ok(outcome) => {
                told.completed(&outcome);
                let stands = match outcome {
                    CompleteOutcome::Stored | CompleteOutcome::Displaced => Arc::clone(record),
                    CompleteOutcome::Completed(record) => record,
                };
                self.leave(Some(stands));
                None
            }
            Err(error) => {
                told.degraded(
                    Operation::Complete,
                    &error,
                    "its response is reported again",
                );
                Some(error)
            }
        }
    }

    fn released(&self, answer: Answer<ReleaseOutcome>, now: Instant) -> Option<StoreError> {
        match answer {
            Ok(_) => {
                self.leave(None);
                None
            }
            Err(error) => {
                let so = "its claim is released again";
                self.request.told().degraded(Operation::Release, &error, so);
                (now < self.ends).then_some(error)
            }
        }
    }

    fn leave(&self, record: Option<Arc<Record>>) {
        if let Some(place) = self.state.lock().place.take() {
            place.leave(record);
        }
    }

    fn pause(&self, error: &StoreError) -> Duration {
        let longest = match error.kind() {
            StoreErrorKind::Unavailable => LONGEST_PAUSE,
            StoreErrorKind::Full | StoreErrorKind::Unreadable => LONGEST_REFUSED_PAUSE,
        };
        let mut state = self.state.lock();
        let pause = state.pause;
        state.pause = (pause * 2).min(longest);
        pause
    }
}

impl Duty for Report {
    fn carry_out(self: Arc<Self>) -> BoxFuture<()> {
        Box::pin(async move {
            let request = Arc::clone(&self.request);
            if let Some(remote) = &request.engine.remote {
                self.carry(remote).await;
            }
        })
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(remote) = &self.request.engine.remote {
            remote.reports.count.fetch_sub(1, Ordering::Relaxed);
            remote
                .reports
                .bytes
                .fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}
