//! What can fail while a runtime is built, and what a store reports.

use std::{borrow::Cow, error::Error as StdError, fmt};

type Source = Box<dyn StdError + Send + Sync>;

/// Why a runtime could not be built, installed or drained.
///
/// The message names every cause at once; [`kind`](Self::kind) is for code.
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The builder was given a value out of its bounds, or none where it needs one.
    Configuration,
    /// A process-wide runtime is installed already.
    AlreadyInstalled,
    /// A server that a store was to be connected to can be reached, but not used: its version, the
    /// credentials.
    Store,
    /// Runs were still in progress when the deadline of `drain` passed.
    StillRunning,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    /// The message as it is, for a `main` that returns it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {}

/// Why a [`Store`](crate::store::Store) could not carry out a command.
///
/// It says nothing about whether the command took effect: a reply may have been lost.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    source: Option<Source>,
}

/// The kinds of [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store could not be reached, refused the command or answered too late.
    Unavailable,
    /// The store can be reached but has no room for a new claim. Such a request is refused in every
    /// mode: run without a claim, it might run beside another attempt.
    Full,
    /// Something stands at the key that cannot be read: a foreign value, or a format of
    /// another version. Such a request is refused in every mode, because a record may be
    /// what stands there.
    Unreadable,
}

impl StoreError {
    /// The store could not be reached, refused the command or answered too late.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: StoreErrorKind::Unavailable,
            message: message.into(),
            source: None,
        }
    }

    /// The store has no room for a new claim.
    pub fn full(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: StoreErrorKind::Full,
            message: message.into(),
            source: None,
        }
    }

    /// Something stands at the key that cannot be read.
    pub fn unreadable(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: StoreErrorKind::Unreadable,
            message: message.into(),
            source: None,
        }
    }

    /// Keeps the error below as [`source`](StdError::source).
    #[must_use]
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A failure of the same kind in other words, with this one below.
    pub(crate) fn told_as(self, message: &'static str) -> Self {
        Self {
            kind: self.kind,
            message: Cow::Borrowed(message),
            source: Some(self.into()),
        }
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
