//! From a bound request to its response: claim, run, capture, report.

use std::sync::Arc;

use axum::response::Response;

use super::{
    IdempotencyContext, Options, call::Bound, capture::capture, problem::refuse, replay::replay,
};
use crate::{
    engine::{Decision, Finish, Lease, Phase, Start},
    key::IdempotencyKey,
    record::Record,
    runtime::{Inner, Verdict},
    shared::Shared,
    store::Step,
};

/// A handler's run, from its claim to its report.
pub(super) struct Running {
    serving: Serving,
    lease: Lease,
}

/// What is needed at both ends of a run.
pub(super) struct Serving {
    runtime: Shared<Inner>,
    options: &'static Options,
    observed: Option<(IdempotencyContext, IdempotencyKey)>,
}

/// Where a request stands after the store has been asked once.
pub(super) enum Begun {
    /// Nothing has to run.
    Answered(Response),
    /// The handler runs, now or once the store or another request allows it. Work in a waiting
    /// `phase` holds nothing.
    Work {
        running: Step<Result<Running, Response>>,
        phase: Option<Arc<Phase>>,
    },
}

/// Claims.
#[inline(never)]
pub(super) fn begin(bound: Bound) -> Begun {
    let Bound {
        runtime,
        options,
        observed,
        attempt,
    } = bound;
    let serving = Serving {
        runtime,
        options,
        observed,
    };
    match attempt.start() {
        Start::Decided(decision) => match serving.answer(decision) {
            Ok(running) => Begun::Work {
                running: Step::Now(Ok(running)),
                phase: None,
            },
            Err(response) => Begun::Answered(response),
        },
        Start::Pending(attempt, pending) => {
            let phase = Arc::new(Phase::default());
            let work = Arc::clone(&phase);
            let running =
                Step::later(async move { serving.answer(attempt.decided(pending, work).await) });
            Begun::Work {
                running,
                phase: Some(phase),
            }
        }
    }
}

impl Serving {
    /// A run, or the response where there is none.
    fn answer(self, decision: Decision) -> Result<Running, Response> {
        match decision {
            Decision::Run(lease) => {
                if let Some((context, key)) = &self.observed {
                    context.bind(key.clone(), &lease);
                }
                Ok(Running {
                    serving: self,
                    lease,
                })
            }
            Decision::Replay(record) => Err(replay(&record, &self.runtime)),
            Decision::Refuse(refusal) => Err(refuse(refusal, &self.runtime)),
        }
    }
}

impl Running {
    /// Captures and reports what the handler made; the response for the client.
    pub(super) fn finish(mut self, response: Response) -> Step<Response> {
        let Serving {
            runtime, options, ..
        } = &self.serving;
        let (mut parts, body) = response.into_parts();
        // A mark that the handler passes on from another service says nothing of this run.
        parts.headers.remove(&runtime.settings.replay_header);
        // Before anything of the user's own looks at it: a verdict that panics frees no key.
        self.lease.answered(&parts);
        let verdict = match options.verdict {
            Some(verdict) => verdict(&parts),
            None => runtime.judge(&parts),
        };
        if verdict == Verdict::Release {
            self.lease.failed();
            let response = Response::from_parts(parts, body);
            return answer(self.lease.release(), response, self.serving.runtime);
        }
        let most = runtime.settings.max_response_bytes;
        match capture(parts, body, self.lease.request().fingerprint, most) {
            Step::Now((record, response)) => self.complete(record, response),
            Step::Later(captured) => Step::later(async move {
                let (record, response) = captured.await;
                self.complete(record, response).answer().await
            }),
        }
    }

    fn complete(self, record: Record, response: Response) -> Step<Response> {
        answer(self.lease.complete(record), response, self.serving.runtime)
    }
}

/// The run's own response, or that of the run which came first.
fn answer(report: Step<Finish>, own: Response, runtime: Shared<Inner>) -> Step<Response> {
    let choose = move |finish| match finish {
        Finish::Own => own,
        Finish::Replay(record) => replay(&record, &runtime),
    };
    match report {
        Step::Now(finish) => Step::Now(choose(finish)),
        Step::Later(finish) => Step::later(async move { choose(finish.await) }),
    }
}
