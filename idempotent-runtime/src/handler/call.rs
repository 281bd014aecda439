//! One request with a key, from its head to its claim.

use axum::{
    extract::{MatchedPath, OriginalUri, Request},
    http::{HeaderValue, Uri, header, request::Parts},
    response::Response,
};
use bytes::Bytes;
use smallvec::SmallVec;

use super::{IdempotencyContext, Options, problem::Problem};
use crate::{
    caller::{Found, Subject},
    engine::{self, Attempt},
    fingerprint::Fingerprint,
    key::{self, IdempotencyKey, Part, Scope},
    runtime::Inner,
    shared::Shared,
};

/// What is known of a request with a key when its arguments have been extracted.
pub(super) struct Call {
    pub(super) runtime: Shared<Inner>,
    pub(super) context: Option<IdempotencyContext>,
    pub(super) body: Bytes,
    /// How much of the body is kept.
    pub(super) most: usize,
    scope: Scope,
    identified: Result<Found, Box<Response>>,
    target: Target,
    form: Option<HeaderValue>,
}

impl Call {
    /// Reads the head. Nothing is looked up and nobody is refused yet but a malformed key:
    /// the handler's own extractors come first.
    pub(super) fn read(runtime: Shared<Inner>, parts: &mut Parts) -> Result<Box<Self>, Response> {
        let mut scope = Scope::new();
        scope.push(Part::Method, parts.method.as_str().as_bytes());
        match key::parse(&parts.headers, &runtime.settings.header) {
            Ok(key) => scope.push_key(&key.unwrap_or_default()),
            Err(why) => return Err(Problem::KeyMalformed(why.0).response(Some(&runtime))),
        }
        for name in &runtime.scope_headers {
            scope.push(Part::HeaderName, name.as_str().as_bytes());
            for value in parts.headers.get_all(name) {
                scope.push(Part::HeaderValue, value.as_bytes());
            }
            // HTTP/2 sends the host as part of the target (RFC 9113, section 8.3.1).
            if name == header::HOST
                && !parts.headers.contains_key(name)
                && let Some(host) = parts.uri.authority()
            {
                scope.push(Part::HeaderValue, host.as_str().as_bytes());
            }
        }
        let target = target(parts);
        match parts.extensions.get::<MatchedPath>() {
            Some(route) => scope.place(Part::Route, route.as_str().as_bytes()),
            // A fallback: the concrete path is all there is.
            None => scope.place(Part::Path, path_of(&target)),
        }
        let identified = runtime.caller.identify(parts, &mut scope).map_err(Box::new);
        let form = parts
            .headers
            .get(header::CONTENT_TYPE)
            .filter(|value| is_form(value.as_bytes()))
            .cloned();
        // A context that an argument before the last one has asked for.
        let context = parts.extensions.get::<IdempotencyContext>().cloned();
        Ok(Box::new(Self {
            runtime,
            context,
            body: Bytes::new(),
            most: 0,
            scope,
            identified,
            target,
            form,
        }))
    }

    /// What the attribute's options and the `subject` make of it: a request for the engine.
    pub(super) fn bind(
        mut self: Box<Self>,
        options: &'static Options,
        subject: Option<&Subject>,
    ) -> Result<Bound, Response> {
        let subject = subject.and_then(Subject::name);
        match self.identified {
            Ok(Found::Caller) => {}
            _ if subject.is_some() => {}
            Ok(Found::Nobody(why)) => return Err(unidentified(&self.runtime, options, &why)),
            Err(response) => return Err(*response),
        }
        let storage = self.scope.digest(options.name, subject);
        let form = self.form.as_ref().map(HeaderValue::as_bytes);
        let fingerprint = Fingerprint::of(&self.target, form, &self.body, options.ignore);
        let observed = self.context.take().and_then(|context| {
            let key = IdempotencyKey::from_ascii(self.scope.key())?;
            Some((context, key))
        });
        let runtime = self.runtime.clone();
        let policy = options.policy(&runtime.settings);
        let attempt = Attempt::new(engine::Request::new(
            runtime.engine(),
            storage,
            fingerprint,
            policy,
        ));
        Ok(Bound {
            runtime,
            options,
            observed,
            attempt,
        })
    }
}

type Target = SmallVec<[u8; 64]>;

/// Path and query as the client sent them, and as the handler sees them where a nested router or a
/// layer has changed them.
fn target(parts: &Parts) -> Target {
    let original = parts.extensions.get::<OriginalUri>();
    let original = original.map_or(&parts.uri, |original| &original.0);
    let mut target = Target::from_slice(path_and_query(original));
    if path_and_query(original) != path_and_query(&parts.uri) {
        target.push(b'\n');
        target.extend_from_slice(path_and_query(&parts.uri));
    }
    target
}

fn path_and_query(uri: &Uri) -> &[u8] {
    uri.path_and_query()
        .map_or(b"/", |target| target.as_str().as_bytes())
}

/// A target without its query.
fn path_of(target: &[u8]) -> &[u8] {
    target
        .split(|&byte| byte == b'?')
        .next()
        .unwrap_or_default()
}

/// A request that can be claimed.
pub(super) struct Bound {
    pub(super) runtime: Shared<Inner>,
    pub(super) options: &'static Options,
    /// The context, where the handler has asked for it.
    pub(super) observed: Option<(IdempotencyContext, IdempotencyKey)>,
    pub(super) attempt: Attempt,
}

fn is_form(content_type: &[u8]) -> bool {
    content_type
        .get(..MULTIPART.len())
        .is_some_and(|essence| essence.eq_ignore_ascii_case(MULTIPART))
}

const MULTIPART: &[u8] = b"multipart/form-data";

fn unidentified(runtime: &Inner, options: &Options, why: &str) -> Response {
    tracing::error!(
        handler = options.handler,
        "nothing tells whose idempotency key this is, so the request is refused with 500: {why}; or add \
         `subject = ..` to the handler's attribute"
    );
    Problem::CallerUnidentified.response(Some(runtime))
}

/// A request with a key, in a process without a runtime.
pub(super) fn no_runtime(request: &Request) -> Response {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    tracing::error!(
        method = %request.method(),
        route = route.unwrap_or("none"),
        "a request carries an idempotency key, but there is no runtime, so it is refused with 500: call \
         `IdempotencyRuntime::embedded(..).install()` at start-up, or add `.layer(Extension(runtime))` to the \
         router, after its routes"
    );
    Problem::RuntimeMissing.response(None)
}
