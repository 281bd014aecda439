//! What is kept of a finished request, and who may write it.

use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use bytes::Bytes;
use once_cell::sync::Lazy;

use crate::fingerprint::Fingerprint;

/// The response of a run that took effect, and the request it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The request that was answered.
    pub fingerprint: Fingerprint,
    /// The status of the response.
    pub status: StatusCode,
    /// The headers that a replay sends again, in their order.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// The body, or the note that there is none to send again.
    pub body: RecordBody,
}

/// The body of a [`Record`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordBody {
    /// All bytes of the response.
    Stored(Bytes),
    /// The run took effect, but its response cannot be sent again: its length was unknown or over
    /// the limit. A duplicate is refused instead of run.
    Unreplayable,
}

impl Record {
    /// A record of these parts.
    #[must_use]
    pub fn new(
        fingerprint: Fingerprint,
        status: StatusCode,
        headers: impl Into<Box<[(HeaderName, HeaderValue)]>>,
        body: RecordBody,
    ) -> Self {
        Self {
            fingerprint,
            status,
            headers: headers.into(),
            body,
        }
    }

    /// Where the response says that its result is.
    pub(crate) fn location(&self) -> Option<&HeaderValue> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(name, _)| name == header::LOCATION);
        found.map(|(_, value)| value)
    }

    /// What is left of it where its response cannot be kept.
    pub(crate) fn without_response(&self) -> Self {
        Self::marker(self.fingerprint, self.status, self.location().cloned())
    }

    /// The note that a run took effect, without its response.
    pub(crate) fn marker(
        fingerprint: Fingerprint,
        status: StatusCode,
        location: Option<HeaderValue>,
    ) -> Self {
        let headers: Vec<_> = location
            .map(|location| (header::LOCATION, location))
            .into_iter()
            .collect();
        Self::new(fingerprint, status, headers, RecordBody::Unreplayable)
    }
}

/// Who holds a claim: one a request, made before its first command and sent with every one.
///
/// A store compares tokens and keeps them; it never looks inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token([u8; 16]);

/// How many tokens a thread makes before it asks for more.
const BLOCK: u64 = 1 << 16;

impl Token {
    /// A token that no other request has, here or in another process.
    #[must_use]
    pub fn unique() -> Self {
        // The first `RandomState` of a thread has 128 bits from the operating system; later ones of
        // that thread count up from them. Taken once a process it differs from all other
        // processes': that two of a million have the same 64 bits has odds of one in 37 million
        // (n² / 2⁶⁵), and then they would have to count alike too, at the same key.
        static PROCESS: Lazy<u64> = Lazy::new(|| RandomState::new().build_hasher().finish());
        static BLOCKS: AtomicU64 = AtomicU64::new(0);
        // Each thread counts within blocks of its own, so that no two write to one cache line.
        thread_local!(static NEXT: Cell<u64> = const { Cell::new(0) });
        let count = NEXT.with(|next| {
            if next.get().is_multiple_of(BLOCK) {
                next.set(BLOCKS.fetch_add(BLOCK, Ordering::Relaxed));
            }
            next.replace(next.get() + 1)
        });
        Self((u128::from(*PROCESS) << 64 | u128::from(count)).to_be_bytes())
    }

    /// The token of these bytes, as a store kept them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:032x})", u128::from_be_bytes(self.0))
    }
}
