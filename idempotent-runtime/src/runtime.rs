//! The runtime of a service: built once, installed for the process or put on a router.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Once},
    time::Duration,
};

use axum::http::{Extensions, HeaderName, response::Parts};
use once_cell::sync::OnceCell;

use crate::{
    caller::Caller,
    engine::{Engine, Health},
    error::{Error, ErrorKind},
    metrics,
    settings::Settings,
    shared::Shared,
    store::{Level, MemoryStore, Store},
};

static INSTALLED: OnceCell<IdempotencyRuntime> = OnceCell::new();

/// What to do with a handler's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The handler took effect: the response is stored, and a retry gets it again.
    Store,
    /// It took none: the key is free, and a retry runs.
    Release,
}

type Judge = dyn Fn(&Parts) -> Verdict + Send + Sync;

/// What `#[idempotent]` handlers call: who calls, what is stored where, and for how long.
///
/// Cheap to clone. [Install](Self::install) one for the process, or put one on a router with
/// `Extension(runtime)`, which wins over the installed one:
///
/// ```
/// use axum::{Extension, Router, routing::post};
/// use idempotent_runtime::{Caller, IdempotencyRuntime, idempotent};
///
/// #[idempotent]
/// async fn create_order(body: String) -> String {
///     body
/// }
///
/// let runtime = IdempotencyRuntime::embedded(Caller::shared());
/// let app: Router = Router::new()
///     .route("/orders", post(create_order))
///     .layer(Extension(runtime));
/// # drop(app);
/// ```
#[derive(Clone)]
pub struct IdempotencyRuntime {
    inner: Arc<Inner>,
}

/// The parts of a runtime, as the handler path reads them.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) caller: Caller,
    pub(crate) scope_headers: Box<[HeaderName]>,
    pub(crate) problem_base: Cow<'static, str>,
    verdict: Option<Box<Judge>>,
    pub(crate) engine: Arc<Engine>,
}

impl IdempotencyRuntime {
    /// Starts a runtime; [`caller`](Builder::caller) must be chosen.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A runtime for one process: default settings, records in its memory.
    #[must_use]
    pub fn embedded(caller: Caller) -> Self {
        Builder::default().assemble(caller)
    }

    /// Makes this the runtime of all handlers in the process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AlreadyInstalled`] where there is one already.
    pub fn install(&self) -> Result<(), Error> {
        INSTALLED.set(self.clone()).map_err(|_| {
            Error::new(
                ErrorKind::AlreadyInstalled,
                "an idempotency runtime is installed already: install one at start-up, or put others on their routers with `Extension(runtime)`",
            )
        })
    }

    /// How many handlers of requests with a key run now, whether or not their clients still wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.inner.engine.in_flight()
    }

    /// What this process knows of its own guarantee, for a readiness check. Claims a
    /// key that no request has, and gives it back, so it takes two round trips, and at most
    /// `store_timeout` for each.
    ///
    /// A service whose handlers fail open is ready all the same; one that must not run without the
    /// guarantee is not while [`Health::is_guarded`] is `false`.
    ///
    /// ```
    /// use axum::{Extension, http::StatusCode};
    /// use idempotent_runtime::IdempotencyRuntime;
    ///
    /// async fn ready(Extension(runtime): Extension<IdempotencyRuntime>) -> StatusCode {
    ///     if runtime.health().await.is_guarded() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    /// }
    /// # drop(ready);
    /// ```
    pub async fn health(&self) -> Health {
        self.inner.engine.health().await
    }

    /// Waits until no handler of a request with a key runs, for use at shutdown, after the server
    /// has stopped accepting, and no report is left that the store has not taken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StillRunning`] when `deadline` has passed; the message says how many are left.
    ///
    /// ```
    /// # async fn shut_down(runtime: idempotent_runtime::IdempotencyRuntime, app: axum::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    /// axum::serve(listener, app).with_graceful_shutdown(interrupted).await?;
    /// runtime.drain(std::time::Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain(&self, deadline: Duration) -> Result<(), Error> {
        self.inner.engine.drain(deadline).await.map_err(|running| {
            Error::new(
                ErrorKind::StillRunning,
                format!("{running} requests with an idempotency key are still under way after {deadline:?}"),
            )
        })
    }
}

impl fmt::Debug for IdempotencyRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyRuntime")
            .field("settings", &self.inner.settings)
            .field("caller", &self.inner.caller)
            .field("engine", &self.inner.engine)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Whether a response took effect: the application's own judgement, or any 2xx.
    pub(crate) fn judge(&self, response: &Parts) -> Verdict {
        match &self.verdict {
            Some(verdict) => verdict(response),
            None if response.status.is_success() => Verdict::Store,
            None => Verdict::Release,
        }
    }
}

/// The runtime of a request: its router's, else the installed one.
pub(crate) fn of(extensions: &Extensions) -> Option<Shared<Inner>> {
    match extensions.get::<IdempotencyRuntime>() {
        Some(runtime) => Some(Shared::Counted(Arc::clone(&runtime.inner))),
        None => INSTALLED
            .get()
            .map(|runtime| Shared::Static(&*runtime.inner)),
    }
}

impl Shared<Inner> {
    pub(crate) fn engine(&self) -> Shared<Engine> {
        match self {
            Self::Static(inner) => Shared::Static(&*inner.engine),
            Self::Counted(inner) => Shared::Counted(Arc::clone(&inner.engine)),
        }
    }
}

/// Collects what a runtime is made of.
///
/// ```
/// use idempotent_runtime::{Caller, IdempotencyRuntime, MemoryStore, Settings};
///
/// let runtime = IdempotencyRuntime::builder()
///     .caller(Caller::subject().or(Caller::peer()))
///     .settings(Settings::default())
///     .store(MemoryStore::new().max_bytes(64 * 1024 * 1024))
///     .build()?;
/// # drop(runtime);
/// # Ok::<(), idempotent_runtime::Error>(())
/// ```
#[derive(Default)]
#[must_use = "nothing is built before `build`"]
pub struct Builder {
    caller: Option<Caller>,
    settings: Settings,
    store: Option<Arc<dyn Store>>,
    verdict: Option<Box<Judge>>,
    scope_headers: Vec<String>,
    problem_base: Option<String>,
}

impl Builder {
    /// Whose key it is. Has no default.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// The numbers. Default [`Settings::default`].
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Where claims and records stand. Default [`MemoryStore::new`].
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Which responses took effect. Default: every 2xx.
    ///
    /// For services where a decline is a result, a 303 is success, or a 200 carries an error. A
    /// handler's own `verdict = path` wins over this.
    ///
    /// ```
    /// use idempotent_runtime::{Caller, IdempotencyRuntime, Verdict};
    ///
    /// let builder = IdempotencyRuntime::builder().verdict(|response| {
    ///     if response.status.is_success() || response.status == 402 { Verdict::Store } else { Verdict::Release }
    /// });
    /// # drop(builder.caller(Caller::shared()));
    /// ```
    pub fn verdict<F>(mut self, verdict: F) -> Self
    where
        F: Fn(&Parts) -> Verdict + Send + Sync + 'static,
    {
        self.verdict = Some(Box::new(verdict));
        self
    }

    /// Headers that separate requests with the same key, such as a tenant or an API version.
    /// Default none.
    pub fn scope_headers<I>(mut self, names: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.scope_headers.extend(names.into_iter().map(Into::into));
        self
    }

    /// What the `type` of a problem begins with. Default `urn:idempotency:`; an `https://` prefix
    /// leads clients to documentation of your own.
    pub fn problem_base(mut self, base: impl Into<String>) -> Self {
        self.problem_base = Some(base.into());
        self
    }

    /// Checks everything and builds the runtime.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] names every value that is missing or out of its bounds.
    pub fn build(mut self) -> Result<IdempotencyRuntime, Error> {
        let mut problems = self.settings.problems();
        let caller = self.caller.take();
        if caller.is_none() {
            problems.push("no caller is chosen: add `.caller(Caller::subject())`, or another way to tell callers apart".to_owned());
        }
        for name in &self.scope_headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                problems.push(format!(
                    "`scope_headers` has \"{name}\", which is not a header name"
                ));
            }
        }
        if let Some(base) = &self.problem_base
            && !base.starts_with("https://")
            && !base.starts_with("urn:")
        {
            problems.push(format!(
                "`problem_base` is \"{base}\", neither an `https://` nor a `urn:` prefix"
            ));
        }
        if let (Some(caller), []) = (caller, &*problems) {
            return Ok(self.assemble(caller));
        }
        Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the idempotency runtime cannot be built: {}",
                problems.join("; ")
            ),
        ))
    }

    /// Puts the parts together, which have been checked.
    fn assemble(self, caller: Caller) -> IdempotencyRuntime {
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        match store.level() {
            Level::Embedded => warn_of_process_local(),
            Level::Leased | Level::Locked => self.settings.warn_of_short_leases(),
        }
        metrics::describe();
        let engine = Arc::new(Engine::new(store, &self.settings));
        let scope_headers = self
            .scope_headers
            .iter()
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok());
        IdempotencyRuntime {
            inner: Arc::new(Inner {
                caller,
                scope_headers: scope_headers.collect(),
                problem_base: self
                    .problem_base
                    .map_or(Cow::Borrowed("urn:idempotency:"), Cow::Owned),
                verdict: self.verdict,
                engine,
                settings: self.settings,
            }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("caller", &self.caller)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn warn_of_process_local() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "idempotency records are kept in the memory of this process: another replica, or this one after a restart, does not see them"
        );
    });
}
