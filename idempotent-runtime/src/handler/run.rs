//! What an `#[idempotent]` function returns.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;

use super::{
    Idempotent, Options,
    call::Bound,
    extract::Key,
    problem::Problem,
    serve::{Begun, begin},
};
use crate::{caller::Subject, engine::Work};

pin_project! {
    /// The run of an `#[idempotent]` handler: a future of its response.
    ///
    /// Without a key it is the handler's own future, and nothing more.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Run<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F> {
        Plain { #[pin] handler: F },
        // not polled yet, so the handler may still move
        Keyed { start: Option<(Bound, F)> },
        Working { work: Work<Response> },
        // the handler is kept for `original`
        Refused { response: Option<Box<Response>>, handler: Option<F> },
    }
}

impl<F> Run<F> {
    /// The handler's own future with its declared return type, for unit tests: whatever key the
    /// request has, it just runs.
    ///
    /// # Panics
    ///
    /// When the run has been polled before.
    #[expect(clippy::panic, reason = "documented, and only for tests")]
    pub fn original(self) -> F {
        match self.state {
            State::Plain { handler }
            | State::Keyed {
                start: Some((_, handler)),
            }
            | State::Refused {
                handler: Some(handler),
                ..
            } => handler,
            State::Keyed { start: None }
            | State::Working { .. }
            | State::Refused { handler: None, .. } => {
                panic!("`original` is called on a run that has begun")
            }
        }
    }

    /// The run that `make` makes of the last argument. With a key, `make` also computes the subject.
    #[doc(hidden)]
    pub fn new<L>(
        options: &'static Options,
        last: Idempotent<L>,
        make: impl FnOnce(L, bool) -> (Option<Subject>, F),
    ) -> Self {
        let state = match last.key {
            Key::Present(call) => {
                let (subject, handler) = make(last.inner, true);
                match call.bind(options, subject.as_ref()) {
                    Ok(bound) => State::Keyed {
                        start: Some((bound, handler)),
                    },
                    Err(response) => State::Refused {
                        response: Some(Box::new(response)),
                        handler: Some(handler),
                    },
                }
            }
            Key::Absent(runtime) if options.required => State::Refused {
                response: Some(Box::new(Problem::KeyMissing.response(runtime.as_deref()))),
                handler: Some(make(last.inner, false).1),
            },
            Key::Direct | Key::Safe | Key::Absent(_) => State::Plain {
                handler: make(last.inner, false).1,
            },
        };
        Self { state }
    }
}

impl<F> fmt::Debug for Run<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl<F> Future for Run<F>
where
    F: Future + Send + 'static,
    F::Output: IntoResponse,
{
    type Output = Response;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let mut state = self.project().state;
        loop {
            let (bound, handler) = match state.as_mut().project() {
                Projected::Plain { handler } => {
                    return handler.poll(cx).map(IntoResponse::into_response);
                }
                Projected::Working { work } => return Pin::new(work).poll(cx),
                Projected::Refused { response, .. } => {
                    return response
                        .take()
                        .map_or(Poll::Pending, |response| Poll::Ready(*response));
                }
                Projected::Keyed { start } => match start.take() {
                    Some(start) => start,
                    None => return Poll::Pending,
                },
            };
            let (running, phase) = match begin(bound) {
                Begun::Answered(response) => return Poll::Ready(response),
                Begun::Work { running, phase } => (running, phase),
            };
            // The one piece that is compiled for each handler: its future, erased.
            let work = Box::pin(async move {
                match running.answer().await {
                    Ok(running) => {
                        let response = handler.await.into_response();
                        running.finish(response).answer().await
                    }
                    Err(response) => response,
                }
            });
            state.set(State::Working {
                work: Work::new(work, phase),
            });
        }
    }
}
