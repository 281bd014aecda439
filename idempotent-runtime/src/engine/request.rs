//! One request, and the commands that it sends: the same token in each of them.

use std::{sync::Arc, time::Duration};

use super::{Answer, Engine, Policy, told::Told};
use crate::{
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, RecordBody, Token},
    settings::OnLostRun,
    shared::Shared,
    store::{Claim, ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome, Step},
};

/// How many bytes of a response are sent in a millisecond at least: 80 Mbit/s.
const BYTES_A_MILLISECOND: usize = 10_000;

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

    /// Claims; `sent` is called if the claim goes out.
    pub(super) fn claim(&self, sent: impl FnOnce()) -> Step<Answer<ClaimOutcome>> {
        self.engine.send(self.engine.store_timeout, |store| {
            sent();
            store.claim(&self.key, self.claimed())
        })
    }

    /// Renews; `sent` is called if the renewal goes out.
    pub(super) fn renew(&self, sent: impl FnOnce()) -> Step<Answer<RenewOutcome>> {
        self.engine.send(self.engine.store_timeout, |store| {
            sent();
            store.renew(&self.key, self.claimed())
        })
    }

    pub(super) fn complete(
        &self,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Answer<CompleteOutcome>> {
        let limit = self.engine.store_timeout + transfer(&record);
        self.engine.send(limit, |store| {
            store.complete(&self.key, self.token, record, retention)
        })
    }

    pub(super) fn release(&self) -> Step<Answer<ReleaseOutcome>> {
        self.engine.send(self.engine.store_timeout, |store| {
            store.release(&self.key, self.token)
        })
    }

    fn claimed(&self) -> Claim {
        Claim::new(self.token, self.fingerprint, self.policy.lease).kept(self.kept())
    }

    /// How long its claim is kept after its lease.
    pub(super) fn kept(&self) -> Duration {
        match self.policy.on_lost_run {
            OnLostRun::Retry => Duration::ZERO,
            OnLostRun::Unknown => self.policy.retention,
        }
    }

    /// Who log lines are about.
    pub(super) fn told(&self) -> Told {
        Told {
            key: self.key,
            handler: self.policy.handler,
        }
    }
}

/// What a large response may take beyond `store_timeout`.
fn transfer(record: &Record) -> Duration {
    match &record.body {
        RecordBody::Stored(body) => {
            let millis = body.len() / BYTES_A_MILLISECOND;
            Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
        }
        RecordBody::Unreplayable => Duration::ZERO,
    }
}
