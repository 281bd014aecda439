//! What a handler can know of its own guarantee.

use std::{
    cell::RefCell,
    convert::Infallible,
    fmt::{self, Write as _},
    sync::{Arc, OnceLock},
};

use axum::{extract::FromRequestParts, http::request::Parts};
use sha2::{Digest, Sha256};

use crate::{
    engine::{Lease, Renewal},
    fingerprint::Fingerprint,
    key::{IdempotencyKey, StorageKey},
};

/// The key of the request that a handler runs for, as an extractor.
///
/// Without a key, and in a handler without `#[idempotent]`, it is empty.
///
/// ```
/// use axum::Json;
/// use idempotent_runtime::{IdempotencyContext, idempotent};
///
/// # async fn charge(_: Option<String>) {}
/// #[idempotent]
/// async fn pay(context: IdempotencyContext, amount: Json<u32>) -> String {
///     // The payment provider sees one key for all retries of this request.
///     charge(context.child_key("payment-provider")).await;
///     format!("paid {}", amount.0)
/// }
/// ```
#[derive(Clone, Default)]
pub struct IdempotencyContext(Arc<OnceLock<Bound>>);

/// Known once the claim exists, which is after extraction.
struct Bound {
    key: IdempotencyKey,
    storage: StorageKey,
    fingerprint: Fingerprint,
    guarded: bool,
    renewal: Option<Arc<Renewal>>,
}

impl IdempotencyContext {
    /// The client's key.
    #[must_use]
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.0.get().map(|bound| &bound.key)
    }

    /// A key for a call to another service, in the form of a UUID: the same for every retry of this
    /// request, and for this `purpose` only. `None` without a key.
    ///
    /// Where several services of yours call one provider, begin the purpose with the service's name.
    #[must_use]
    pub fn child_key(&self, purpose: &str) -> Option<String> {
        let bound = self.0.get()?;
        let digest = Sha256::new()
            .chain_update(b"idempotent child 1\n")
            .chain_update(bound.storage.as_bytes())
            .chain_update(bound.fingerprint.digest())
            .chain_update(purpose)
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(digest.get(..16)?);
        // Version 8 and the variant (RFC 9562, section 5.8).
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut uuid = String::with_capacity(36);
        for (at, byte) in bytes.into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                uuid.push('-');
            }
            write!(uuid, "{byte:02x}").ok()?;
        }
        Some(uuid)
    }

    /// Whether a claim in the store guards this run. `false` without a key, and when the store
    /// failed and the handler runs all the same.
    #[must_use]
    pub fn guarded(&self) -> bool {
        self.0.get().is_some_and(|bound| bound.guarded)
    }

    /// Whether the claim that guards this run has been lost: its lease ran out because the store
    /// could not be reached or the process stood still, or another request of the key has taken it.
    /// A retry may run beside this run, so a handler can ask before it does what cannot be undone.
    /// Once `true` it stays so; always `false` in an embedded store, whose claims have no lease.
    #[must_use]
    pub fn lease_lost(&self) -> bool {
        let renewal = self.0.get().and_then(|bound| bound.renewal.as_ref());
        renewal.is_some_and(|renewal| renewal.lost())
    }

    /// Fills it for a run.
    pub(super) fn bind(&self, key: IdempotencyKey, lease: &Lease) {
        let request = lease.request();
        // A context is bound once; a second run of the same request does not exist.
        drop(self.0.set(Bound {
            key,
            storage: request.key,
            fingerprint: request.fingerprint,
            guarded: lease.guarded(),
            renewal: lease.renewal(),
        }));
    }
}

impl fmt::Debug for IdempotencyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyContext")
            .field("key", &self.key())
            .field("guarded", &self.guarded())
            .field("lease_lost", &self.lease_lost())
            .finish()
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        if let Some(context) = parts.extensions.get::<Self>() {
            return Ok(context.clone());
        }
        let context = Self::default();
        parts.extensions.insert(context.clone());
        ASKED.with_borrow_mut(|asked| {
            if let Asked::Listening = asked {
                *asked = Asked::For(context.clone());
            }
        });
        Ok(context)
    }
}

/// What an extractor asks for while [`asked`] polls it.
enum Asked {
    Nobody,
    Listening,
    For(IdempotencyContext),
}

thread_local! {
    static ASKED: RefCell<Asked> = const { RefCell::new(Asked::Nobody) };
}

/// Polls the extractor of the last argument, and tells whether it has asked for a context. Putting
/// one into every request's extensions would cost four allocations.
pub(super) fn asked<T>(poll: impl FnOnce() -> T) -> (T, Option<IdempotencyContext>) {
    let outer = ASKED.replace(Asked::Listening);
    let polled = poll();
    match ASKED.replace(outer) {
        Asked::For(context) => (polled, Some(context)),
        Asked::Nobody | Asked::Listening => (polled, None),
    }
}
