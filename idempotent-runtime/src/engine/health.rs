//! What a readiness check wants to know.

use std::time::Duration;

use super::{Answer, Engine};
use crate::{
    clock,
    fingerprint::Fingerprint,
    key::StorageKey,
    record::Token,
    store::{Claim, ClaimOutcome},
};

/// The lease of a claim that is given back at once.
const BRIEF: Duration = Duration::from_secs(1);

/// What a runtime knows of its own guarantee. See [`health`](crate::IdempotencyRuntime::health).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether the store answers, and takes claims.
    pub store: StoreHealth,
    /// Handlers that run now, whether or not their clients still wait.
    pub in_flight: usize,
    /// Reports that the store has not taken yet, and which are tried again.
    pub pending_reports: usize,
    /// About how many bytes of memory they take.
    pub pending_bytes: usize,
}

/// Whether the store answers, and takes claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreHealth {
    /// It has taken a claim.
    Up,
    /// It has not, be it that it can only be read: requests run without the guarantee or are
    /// refused, as `on_store_failure` says.
    Down {
        /// Since when this process knows.
        since: Duration,
    },
}

impl Health {
    /// Whether a handler that begins now is guarded.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.store == StoreHealth::Up
    }
}

impl Engine {
    pub(crate) async fn health(&self) -> Health {
        let Some(remote) = &self.remote else {
            return Health {
                store: StoreHealth::Up,
                in_flight: self.in_flight(),
                pending_reports: 0,
                pending_bytes: 0,
            };
        };
        let answered = self.takes_claims().await;
        let since = remote
            .breaker
            .down_since()
            .map(|since| clock::now() - since);
        let store = match (answered, since) {
            (Ok(()), _) => StoreHealth::Up,
            (Err(_), since) => StoreHealth::Down {
                since: since.unwrap_or_default(),
            },
        };
        Health {
            store,
            in_flight: self.in_flight(),
            pending_reports: remote.reports.count(),
            pending_bytes: remote.reports.bytes(),
        }
    }

    /// Claims as a request does, at a key that none has, and gives it back. A server that only takes
    /// no writes answers everything else.
    async fn takes_claims(&self) -> Answer<()> {
        let (key, token) = (StorageKey::from_bytes([0; 32]), Token::unique());
        let claim = Claim::new(token, Fingerprint::from_parts(0, [0; 32]), BRIEF);
        let step = self.send(self.store_timeout, |store| store.claim(&key, claim));
        match step.answer().await? {
            ClaimOutcome::Claimed => {
                let step = self.send(self.store_timeout, |store| store.release(&key, token));
                step.answer().await.map(drop)
            }
            // Another replica asks the same.
            ClaimOutcome::InProgress { .. }
            | ClaimOutcome::Lapsed { .. }
            | ClaimOutcome::Completed(_) => Ok(()),
        }
    }
}
