//! The last argument: with a key, the body is kept while the handler's own extractor reads it.

use std::{
    fmt,
    future::{self, Future},
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderName, Method, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use pin_project_lite::pin_project;

use super::{
    body::{Buffer, Filled, Tee, Unkept, is_over_limit},
    call::{Call, no_runtime},
    context::asked,
    limit,
    problem::Problem,
};
use crate::{
    runtime::{self, Inner},
    shared::Shared,
};

/// The last argument of an `#[idempotent]` handler, as the function takes it.
///
/// It extracts what `L` extracts, from the same request. In a unit test, `.into()` makes one:
///
/// ```
/// use axum::Json;
/// use idempotent_runtime::idempotent;
///
/// #[idempotent]
/// async fn double(Json(n): Json<u32>) -> Json<u32> {
///     Json(n * 2)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let Json(n) = double(Json(21).into()).original().await;
/// assert_eq!(n, 42);
/// # }
/// ```
#[derive(Debug)]
pub struct Idempotent<L> {
    pub(super) inner: L,
    pub(super) key: Key,
}

/// What a request says of its key.
pub(super) enum Key {
    /// No request: the function was called directly.
    Direct,
    /// A safe method, which needs no key and ignores one.
    Safe,
    Absent(Option<Shared<Inner>>),
    Present(Box<Call>),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "Direct",
            Self::Safe => "Safe",
            Self::Absent(_) => "Absent",
            Self::Present(_) => "Present",
        })
    }
}

impl<L> From<L> for Idempotent<L> {
    fn from(inner: L) -> Self {
        Self {
            inner,
            key: Key::Direct,
        }
    }
}

impl<L> Deref for Idempotent<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.inner
    }
}

/// Carries the marker of the wrapped extractor, so that the compiler infers whether it reads the
/// body.
#[derive(Debug)]
pub struct Via<M>(PhantomData<M>);

/// Stands for the last argument of a handler that has none.
#[derive(Debug, Clone, Copy)]
pub struct NoArgs;

impl<S: Sync> FromRequestParts<S> for NoArgs {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self)
    }
}

#[diagnostic::do_not_recommend]
impl<S, M, L> FromRequest<S, Via<M>> for Idempotent<L>
where
    L: FromRequest<S, M> + Send,
    S: Send + Sync,
{
    type Rejection = Response;

    fn from_request(
        request: Request,
        state: &S,
    ) -> impl Future<Output = Result<Self, Response>> + Send {
        let extract = move |request| L::from_request(request, state);
        match open(request) {
            Opened::Plain(request, key) => Extract::Inner {
                inner: extract(request),
                key: Some(key),
                tee: None,
            },
            Opened::Small(reading) => Extract::Read {
                reading,
                extract: Some(extract),
            },
            Opened::Large(request, call, tee) => Extract::Inner {
                inner: extract(request),
                key: Some(Key::Present(call)),
                tee: Some(tee),
            },
            Opened::Refused(response) => Extract::Refused {
                response: Some(response),
            },
        }
    }
}

/// Up to this length, and known, a body is read before the handler's extractor sees it, which then
/// applies its own limit.
const SMALL: usize = 64 * 1024;

enum Opened {
    Plain(Request, Key),
    Small(Reading),
    Large(Request, Box<Call>, Tee),
    Refused(Response),
}

/// A request whose body is being read.
struct Reading {
    head: Option<(Parts, Box<Call>)>,
    body: Body,
    buffer: Buffer,
}

#[inline]
fn open(request: Request) -> Opened {
    static HEADER: HeaderName = HeaderName::from_static("idempotency-key");
    let runtime = runtime::of(request.extensions());
    let header = runtime
        .as_ref()
        .map_or(&HEADER, |runtime| &runtime.settings.header);
    if !request.headers().contains_key(header) {
        let key = if is_safe(request.method()) {
            Key::Safe
        } else {
            Key::Absent(runtime)
        };
        return Opened::Plain(request, key);
    }
    open_keyed(request, runtime)
}

#[inline(never)]
fn open_keyed(request: Request, runtime: Option<Shared<Inner>>) -> Opened {
    if is_safe(request.method()) {
        return Opened::Plain(request, Key::Safe);
    }
    let Some(runtime) = runtime else {
        return Opened::Refused(no_runtime(&request));
    };
    let most = runtime.settings.max_request_bytes;
    let (mut parts, body) = request.into_parts();
    let mut call = match Call::read(runtime, &mut parts) {
        Ok(call) => call,
        Err(response) => return Opened::Refused(response),
    };
    let length = body.size_hint().exact();
    let small = SMALL.min(most);
    if length.is_some_and(|length| length <= small as u64) {
        return Opened::Small(Reading {
            head: Some((parts, call)),
            body,
            buffer: Buffer::of(small),
        });
    }
    let (request, most) = limit::most(Request::from_parts(parts, body), most);
    call.most = most;
    if length.is_some_and(|length| length > most as u64) {
        return Opened::Refused(too_large(&call));
    }
    let (parts, body) = request.into_parts();
    let (body, tee) = Tee::new(body, most);
    Opened::Large(Request::from_parts(parts, body), call, tee)
}

/// Methods that change nothing (RFC 9110, section 9.2.1).
fn is_safe(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}

fn too_large(call: &Call) -> Response {
    Problem::BodyTooLarge { most: call.most }.response(Some(&call.runtime))
}

/// A body that failed: over a limit of a layer around the handler, or broken off.
fn unreadable(over_limit: bool, call: &Call) -> Response {
    let problem = if over_limit {
        Problem::BodyOverLimit
    } else {
        Problem::BodyUnreadable
    };
    problem.response(Some(&call.runtime))
}

impl Call {
    /// Takes the body that was kept.
    fn keep(mut self: Box<Self>, kept: Result<Bytes, Unkept>) -> Result<Box<Self>, Response> {
        match kept {
            Ok(body) => {
                self.body = body;
                Ok(self)
            }
            Err(Unkept::TooLarge) => Err(too_large(&self)),
            Err(Unkept::Failed { over_limit }) => Err(unreadable(over_limit, &self)),
        }
    }
}

impl Reading {
    #[inline(never)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Request, Box<Call>), Response>> {
        let filled = ready!(self.buffer.poll_fill(&mut self.body, cx));
        let Some((parts, mut call)) = self.head.take() else {
            return Poll::Pending;
        };
        let trailers = match filled {
            Filled::Whole(trailers) => trailers,
            Filled::Over(_) => return Poll::Ready(Err(unreadable(true, &call))),
            Filled::Broken(error) => {
                return Poll::Ready(Err(unreadable(is_over_limit(&error), &call)));
            }
        };
        call.body = self.buffer.take();
        let body = match trailers {
            None => Body::from(call.body.clone()),
            Some(trailers) => {
                let body = Full::new(call.body.clone());
                Body::new(body.with_trailers(future::ready(Some(Ok(trailers)))))
            }
        };
        Poll::Ready(Ok((Request::from_parts(parts, body), call)))
    }
}

/// Polls the handler's own extractor.
fn poll_inner<F: Future>(
    inner: Pin<&mut F>,
    key: &mut Option<Key>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let Some(Key::Present(call)) = key else {
        return inner.poll(cx);
    };
    let (polled, context) = asked(|| inner.poll(cx));
    if context.is_some() {
        call.context = context;
    }
    polled
}

pin_project! {
    /// Extracts an [`Idempotent`]. An enum instead of an `async fn`: half a kilobyte less a request.
    #[project = Projected]
    enum Extract<F, K, L> {
        Read { reading: Reading, extract: Option<K> },
        Inner { #[pin] inner: F, key: Option<Key>, tee: Option<Tee> },
        Drain { rest: Option<(L, Box<Call>)>, tee: Tee },
        Refused { response: Option<Response> },
    }
}

impl<F, K, L, R> Future for Extract<F, K, L>
where
    F: Future<Output = Result<L, R>>,
    K: FnOnce(Request) -> F,
    R: IntoResponse,
{
    type Output = Result<Idempotent<L>, Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project() {
                Projected::Read { reading, extract } => match ready!(reading.poll(cx)) {
                    Ok((request, call)) => {
                        let Some(extract) = extract.take() else {
                            return Poll::Pending;
                        };
                        Self::Inner {
                            inner: extract(request),
                            key: Some(Key::Present(call)),
                            tee: None,
                        }
                    }
                    Err(response) => return Poll::Ready(Err(response)),
                },
                Projected::Inner { inner, key, tee } => {
                    let extracted = ready!(poll_inner(inner, key, cx));
                    match (extracted, key.take(), tee.take()) {
                        (Ok(inner), Some(Key::Present(call)), Some(tee)) => Self::Drain {
                            rest: Some((inner, call)),
                            tee,
                        },
                        (Ok(inner), Some(key), _) => {
                            return Poll::Ready(Ok(Idempotent { inner, key }));
                        }
                        (Err(_), Some(Key::Present(call)), Some(tee)) if tee.is_too_large() => {
                            return Poll::Ready(Err(too_large(&call)));
                        }
                        (Err(rejection), ..) => {
                            return Poll::Ready(Err(rejection.into_response()));
                        }
                        (Ok(_), None, _) => return Poll::Pending,
                    }
                }
                Projected::Drain { rest, tee } => {
                    let kept = ready!(tee.poll_drain(cx));
                    let Some((inner, call)) = rest.take() else {
                        return Poll::Pending;
                    };
                    return Poll::Ready(call.keep(kept).map(|call| Idempotent {
                        inner,
                        key: Key::Present(call),
                    }));
                }
                Projected::Refused { response } => {
                    return response
                        .take()
                        .map_or(Poll::Pending, |response| Poll::Ready(Err(response)));
                }
            };
            self.set(next);
        }
    }
}
