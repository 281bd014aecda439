//! What a readiness check wants to know.

use std::time::Duration;

use super::Engine;
use crate::{clock, key::StorageKey, record::Token};

/// What a runtime knows of its own guarantee. See [`health`](crate::IdempotencyRuntime::health).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether the store answers.
    pub store: StoreHealth,
    /// Handlers that run now, whether or not their clients still wait.
    pub in_flight: usize,
    /// Reports that the store has not taken yet, and which are tried again.
    pub pending_reports: usize,
    /// About how many bytes of memory they take.
    pub pending_bytes: usize,
}

/// Whether the store answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreHealth {
    /// It has answered.
    Up,
    /// It has not: requests run without the guarantee or are refused, as `on_store_failure` says.
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
        // A command that changes nothing: no request has this key, nobody this token.
        let (key, token) = (StorageKey::from_bytes([0; 32]), Token::unique());
        let question = self.send(self.store_timeout, |store| store.release(&key, token));
        let answered = question.answer().await;
        let since = remote
            .breaker
            .down_since()
            .map(|since| clock::now() - since);
        let store = match (answered, since) {
            (Ok(_), _) => StoreHealth::Up,
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
}
