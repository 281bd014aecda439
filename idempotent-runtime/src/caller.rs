//! Whose key it is. Chosen in the builder, never inferred.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::{
    extract::ConnectInfo,
    http::{HeaderName, header, request::Parts},
    response::Response,
};

use crate::key::{Part, Scope};

/// Who calls, as the application knows it: an account, a user, a tenant's client.
///
/// Authentication middleware puts it into the request's extensions, where
/// [`Caller::subject`] finds it:
///
/// ```
/// use axum::{extract::Request, middleware::Next, response::Response};
/// use idempotent_runtime::Subject;
///
/// async fn authenticate(mut request: Request, next: Next) -> Response {
///     // .. verify the credentials, then:
///     request.extensions_mut().insert(Subject::new("user 42"));
///     next.run(request).await
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subject(Arc<str>);

impl Subject {
    /// The subject of this name. A blank one counts as none.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into().into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, unless it is blank.
    pub(crate) fn name(&self) -> Option<&str> {
        Some(&*self.0).filter(|name| !name.trim().is_empty())
    }
}

impl fmt::Debug for Subject {
    /// Subjects name people, so none is printed by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subject(..)")
    }
}

type Resolver = dyn Fn(&Parts) -> Result<Option<Subject>, Response> + Send + Sync;

#[derive(Clone)]
enum Source {
    Subject,
    Authorization,
    Peer { credentials: Vec<HeaderName> },
    Function(Arc<Resolver>),
    Shared,
}

/// How the caller of a request is told apart from all others.
///
/// Two callers never share a record, even where both send the same key. Several ways can be joined
/// with [`or`](Self::or); the first that finds a caller decides. A request whose caller nothing
/// identifies is refused with a 500 problem, and the log says which line to add.
#[derive(Clone)]
pub struct Caller {
    sources: Vec<Source>,
}

impl Caller {
    /// The [`Subject`] that authentication middleware put into the request's extensions.
    #[must_use]
    pub fn subject() -> Self {
        Source::Subject.into()
    }

    /// The credentials of `Authorization: Bearer` or `Basic`, as part of a digest.
    ///
    /// A refreshed token is another caller, so a retry with it runs again. Other schemes, which
    /// sign each attempt anew, identify nobody here.
    #[must_use]
    pub fn authorization() -> Self {
        Source::Authorization.into()
    }

    /// The peer's address without its port, for requests that carry no credential.
    ///
    /// Needs the router to be served with `into_make_service_with_connect_info::<SocketAddr>()`.
    /// A request with an `Authorization`, `Cookie` or `X-Api-Key` header, or one named by
    /// [`credential_headers`](Self::credential_headers), is somebody's, so the address does not
    /// identify it. Behind a proxy every client has the proxy's address: put the client's own into
    /// a [`Subject`] instead.
    #[must_use]
    pub fn peer() -> Self {
        let credentials = vec![
            header::AUTHORIZATION,
            header::COOKIE,
            HeaderName::from_static("x-api-key"),
        ];
        Source::Peer { credentials }.into()
    }

    /// What a function of the application says: a subject, none, or a response to refuse with.
    ///
    /// The response is sent as it is, nothing is stored and the handler does not run.
    ///
    /// ```
    /// use axum::{http::StatusCode, response::IntoResponse};
    /// use idempotent_runtime::{Caller, Subject};
    ///
    /// let caller = Caller::from_fn(|parts| match parts.headers.get("x-account") {
    ///     Some(account) => match account.to_str() {
    ///         Ok(account) => Ok(Some(Subject::new(account))),
    ///         Err(_) => Err(StatusCode::BAD_REQUEST.into_response()),
    ///     },
    ///     None => Ok(None),
    /// });
    /// # drop(caller);
    /// ```
    pub fn from_fn<F>(resolve: F) -> Self
    where
        F: Fn(&Parts) -> Result<Option<Subject>, Response> + Send + Sync + 'static,
    {
        Source::Function(Arc::new(resolve)).into()
    }

    /// All callers are one. Only for services with a single tenant: whoever sends a key
    /// gets the response recorded for it.
    #[must_use]
    pub fn shared() -> Self {
        Source::Shared.into()
    }

    /// Asks `other` where this finds no caller.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.sources.extend(other.sources);
        self
    }

    /// Names more headers that carry a credential, for [`peer`](Self::peer).
    ///
    /// # Panics
    ///
    /// Where a name is not a valid header name in lower case.
    #[must_use]
    pub fn credential_headers<const N: usize>(mut self, names: [&'static str; N]) -> Self {
        for source in &mut self.sources {
            if let Source::Peer { credentials } = source {
                credentials.extend(names.map(HeaderName::from_static));
            }
        }
        self
    }

    /// Adds the caller to the scope; `false` where nothing identifies it.
    pub(crate) fn identify(&self, parts: &Parts, scope: &mut Scope) -> Result<bool, Response> {
        for source in &self.sources {
            if source.identify(parts, scope)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl From<Source> for Caller {
    fn from(source: Source) -> Self {
        Self {
            sources: vec![source],
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.sources.iter().map(|source| match source {
            Source::Subject => "subject",
            Source::Authorization => "authorization",
            Source::Peer { .. } => "peer",
            Source::Function(_) => "function",
            Source::Shared => "shared",
        });
        f.write_str("Caller")?;
        f.debug_list().entries(names).finish()
    }
}

impl Source {
    fn identify(&self, parts: &Parts, scope: &mut Scope) -> Result<bool, Response> {
        let found = match self {
            Self::Subject => subject(parts.extensions.get::<Subject>(), scope),
            Self::Function(resolve) => subject(resolve(parts)?.as_ref(), scope),
            Self::Authorization => authorization(parts, scope),
            Self::Peer { credentials } => peer(parts, credentials, scope),
            Self::Shared => {
                scope.push(Part::Shared, b"");
                true
            }
        };
        Ok(found)
    }
}

fn subject(subject: Option<&Subject>, scope: &mut Scope) -> bool {
    let Some(name) = subject.and_then(Subject::name) else {
        return false;
    };
    scope.push(Part::Subject, name.as_bytes());
    true
}

fn authorization(parts: &Parts, scope: &mut Scope) -> bool {
    let mut lines = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (lines.next(), lines.next()) else {
        return false;
    };
    let value = value.as_bytes().trim_ascii();
    let Some((scheme, credentials)) = value
        .iter()
        .position(|&byte| byte == b' ')
        .and_then(|at| value.split_at_checked(at))
    else {
        return false;
    };
    let credentials = credentials.trim_ascii();
    // A scheme is case-insensitive (RFC 9110, section 11.1).
    let part = match scheme {
        scheme if scheme.eq_ignore_ascii_case(b"bearer") => Part::Bearer,
        scheme if scheme.eq_ignore_ascii_case(b"basic") => Part::Basic,
        _ => return false,
    };
    if credentials.is_empty() {
        return false;
    }
    scope.push(part, credentials);
    true
}

fn peer(parts: &Parts, credentials: &[HeaderName], scope: &mut Scope) -> bool {
    if credentials
        .iter()
        .any(|name| parts.headers.contains_key(name))
    {
        return false;
    }
    let Some(ConnectInfo(address)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() else {
        return false;
    };
    let address = format!("anon:{}", address.ip().to_canonical());
    scope.push(Part::Peer, address.as_bytes());
    true
}
