//! One request, and the commands that it sends: the same token in each of them.

use std::{sync::Arc, time::Duration};

use super::{Answer, Engine, Policy, told::Told};
use crate::{
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, Token},
    settings::OnLostRun,
    shared::Shared,
    store::{Claim, CompleteOutcome, ReleaseOutcome, Step},
};

/// One request with a key.
pub(crate) struct Request {
    pub(crate) engine: Shared<Engine>,
    pub(crate) key: StorageKey,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) policy: Policy,
    token: Token,
}

impl Request {
    pub(crate) fn new(
        engine: Shared<Engine>,
        key: StorageKey,
        fingerprint: Fingerprint,
        policy: Policy,
    ) -> Self {
        Self {
            engine,
            key,
            fingerprint,
            policy,
            token: Token::unique(),
        }
    }

    /// What is claimed and renewed.
    pub(super) fn claim(&self) -> Claim {
        let claim = Claim::new(self.token, self.fingerprint, self.policy.lease);
        match self.policy.on_lost_run {
            OnLostRun::Retry => claim,
            OnLostRun::Unknown => claim.kept(self.policy.retention),
        }
    }

    pub(super) fn complete(
        &self,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Answer<CompleteOutcome>> {
        self.engine
            .send(|store| store.complete(&self.key, self.token, record, retention))
    }

    pub(super) fn release(&self) -> Step<Answer<ReleaseOutcome>> {
        self.engine
            .send(|store| store.release(&self.key, self.token))
    }

    /// Who log lines are about.
    pub(super) fn told(&self) -> Told {
        Told {
            key: self.key,
            handler: self.policy.handler,
        }
    }
}
