//! What the attribute says, as a constant of the handler.

use std::time::Duration;

use axum::http::response::Parts;

use crate::{
    engine::Policy,
    runtime::Verdict,
    settings::{OnLostRun, OnStoreFailure, Settings},
};

/// The options of one attribute; what it leaves out, the settings decide.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub(super) handler: &'static str,
    pub(super) required: bool,
    pub(super) name: Option<&'static str>,
    pub(super) ignore: &'static [&'static str],
    pub(super) verdict: Option<fn(&Parts) -> Verdict>,
    retention: Option<Duration>,
    wait: Option<Duration>,
    lease: Option<Duration>,
    on_store_failure: Option<OnStoreFailure>,
    on_lost_run: OnLostRun,
}

impl Options {
    /// No options; `handler` is named in log lines.
    #[must_use]
    pub const fn new(handler: &'static str) -> Self {
        Self {
            handler,
            required: false,
            name: None,
            ignore: &[],
            verdict: None,
            retention: None,
            wait: None,
            lease: None,
            on_store_failure: None,
            on_lost_run: OnLostRun::Retry,
        }
    }

    /// `required`: a request without a key is refused.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// `name = ".."`: stands in for the route.
    #[must_use]
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// `ignore(..)`: JSON pointers to what a retry may change.
    #[must_use]
    pub const fn ignore(mut self, pointers: &'static [&'static str]) -> Self {
        self.ignore = pointers;
        self
    }

    /// `verdict = path`: which responses took effect.
    #[must_use]
    pub const fn verdict(mut self, verdict: fn(&Parts) -> Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }

    /// `retention = ".."`.
    #[must_use]
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// `wait = ".."`.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// `lease = ".."`.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// `on_store_failure = ".."`.
    #[must_use]
    pub const fn on_store_failure(mut self, policy: OnStoreFailure) -> Self {
        self.on_store_failure = Some(policy);
        self
    }

    /// `on_lost_run = ".."`.
    #[must_use]
    pub const fn on_lost_run(mut self, policy: OnLostRun) -> Self {
        self.on_lost_run = policy;
        self
    }

    pub(super) fn policy(&self, settings: &Settings) -> Policy {
        // A handler that requires a key asks for the guarantee, so it does not run without one.
        let by_default = if self.required {
            OnStoreFailure::Closed
        } else {
            settings.on_store_failure
        };
        Policy {
            retention: self.retention.unwrap_or(settings.retention),
            wait: self.wait.unwrap_or(settings.wait),
            lease: self.lease.unwrap_or(settings.lease),
            on_store_failure: self.on_store_failure.unwrap_or(by_default),
            on_lost_run: self.on_lost_run,
            handler: self.handler,
        }
    }
}
