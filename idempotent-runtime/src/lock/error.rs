//! Why a lock could not be asked.

use std::{borrow::Cow, error::Error, fmt};

/// Why a lock could not be taken, renewed or released: the lock itself faults.
///
/// That another holds it is no error. An error says nothing about whether the command took effect,
/// since a reply may have been lost; what it has left behind ends with its `ttl`.
#[derive(Debug)]
pub struct LockError {
    kind: LockErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of [`LockError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockErrorKind {
    /// The lock could not be reached, refused the command or answered too late.
    Unavailable,
    /// The lock can be reached but has no room for another key.
    Full,
    /// Something stands at the key that is no lock.
    Unreadable,
}

impl LockError {
    /// The lock could not be reached, refused the command or answered too late.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(LockErrorKind::Unavailable, message)
    }

    /// The lock can be reached but has no room for another key.
    pub fn full(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(LockErrorKind::Full, message)
    }

    /// Something stands at the key that is no lock.
    pub fn unreadable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(LockErrorKind::Unreadable, message)
    }

    fn of(kind: LockErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> LockErrorKind {
        self.kind
    }

    /// Keeps the error below as [`source`](Error::source).
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref();
        source.map(|source| source as &(dyn Error + 'static))
    }
}
