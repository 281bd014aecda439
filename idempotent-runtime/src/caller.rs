//! Whose key it is. Chosen in the builder, never inferred.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, connect_info::MockConnectInfo},
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
    pub fn new(name: impl fmt::Display) -> Self {
        Self(name.to_string().into())
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
    Peer,
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
    /// Headers that carry a credential besides the usual ones.
    credentials: Vec<HeaderName>,
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
        Source::Peer.into()
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
        self.credentials.extend(other.credentials);
        self
    }

    /// Names more headers that carry a credential, for [`peer`](Self::peer).
    ///
    /// # Panics
    ///
    /// Where a name is not a valid header name in lower case.
    #[must_use]
    pub fn credential_headers<const N: usize>(mut self, names: [&'static str; N]) -> Self {
        self.credentials.extend(names.map(HeaderName::from_static));
        self
    }

    /// Adds the caller to the scope, or says why nothing identifies it.
    pub(crate) fn identify(&self, parts: &Parts, scope: &mut Scope) -> Result<Found, Response> {
        for source in &self.sources {
            if self.ask(source, parts, scope)? {
                return Ok(Found::Caller);
            }
        }
        let why = self
            .sources
            .iter()
            .map(|source| self.why_not(source, parts));
        Ok(Found::Nobody(why.collect::<Vec<_>>().join("; ")))
    }

    fn ask(&self, source: &Source, parts: &Parts, scope: &mut Scope) -> Result<bool, Response> {
        Ok(match source {
            Source::Subject => subject(parts.extensions.get::<Subject>(), scope),
            Source::Function(resolve) => subject(resolve(parts)?.as_ref(), scope),
            Source::Authorization => authorization(parts, scope),
            Source::Peer => self.credential(parts).is_none() && peer(parts, scope),
            Source::Shared => {
                scope.push(Part::Shared, b"");
                true
            }
        })
    }

    /// A header of the request that says it is somebody's.
    fn credential(&self, parts: &Parts) -> Option<&HeaderName> {
        static USUAL: [HeaderName; 3] = [
            header::AUTHORIZATION,
            header::COOKIE,
            HeaderName::from_static("x-api-key"),
        ];
        let mut names = USUAL.iter().chain(&self.credentials);
        names.find(|name| parts.headers.contains_key(*name))
    }

    /// Why a source has not found a caller, and what to do.
    fn why_not(&self, source: &Source, parts: &Parts) -> String {
        match source {
            Source::Subject => {
                "`Caller::subject()` found no `Subject` that is not blank: insert one into the \
                 request's extensions in a layer that authenticates"
                    .to_owned()
            }
            Source::Authorization => {
                "`Caller::authorization()` found no `Bearer` or `Basic` credentials".to_owned()
            }
            Source::Peer => match self.credential(parts) {
                Some(name) => format!(
                    "`Caller::peer()` stands back because the request carries `{name}`: insert a `Subject` for \
                     such requests, or add `.or(Caller::authorization())`"
                ),
                None => "`Caller::peer()` found no `ConnectInfo`: serve the router with \
                     `into_make_service_with_connect_info::<SocketAddr>()`"
                    .to_owned(),
            },
            Source::Function(_) => {
                "the function of `Caller::from_fn` returned no subject".to_owned()
            }
            Source::Shared => "`Caller::shared()` is everybody".to_owned(),
        }
    }
}

/// Whether a request's caller is known.
pub(crate) enum Found {
    Caller,
    /// Nobody, for these reasons.
    Nobody(String),
}

impl From<Source> for Caller {
    fn from(source: Source) -> Self {
        Self {
            sources: vec![source],
            credentials: Vec::new(),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.sources.iter().map(|source| match source {
            Source::Subject => "subject",
            Source::Authorization => "authorization",
            Source::Peer => "peer",
            Source::Function(_) => "function",
            Source::Shared => "shared",
        });
        f.write_str("Caller")?;
        f.debug_list().entries(names).finish()
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

fn peer(parts: &Parts, scope: &mut Scope) -> bool {
    let connected = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let mocked = parts.extensions.get::<MockConnectInfo<SocketAddr>>();
    let address = connected
        .map(|info| info.0)
        .or_else(|| mocked.map(|info| info.0));
    let Some(address) = address else {
        return false;
    };
    let address = format!("anon:{}", address.ip().to_canonical());
    scope.push(Part::Peer, address.as_bytes());
    true
}
