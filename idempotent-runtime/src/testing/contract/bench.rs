//! What all checks work with: a fresh store, parties that send commands, and words for answers.

use std::{fmt, sync::Arc, time::Duration};

use axum::http::StatusCode;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time;

use crate::{
    clock::{self, Instant},
    fingerprint::Fingerprint,
    key::StorageKey,
    record::{Record, RecordBody, Token},
    store::{
        Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step, Store,
        StoreError,
    },
};

/// How long a command or a wake-up may take before it counts as missing.
pub(super) const BOUND: Duration = Duration::from_secs(5);
/// Longer than any check takes.
pub(super) const LONG: Duration = Duration::from_hours(1);

/// Why a check did not pass.
pub(super) enum Failure {
    /// The store broke the rule; the message says how.
    Broken(String),
    /// The machine was too slow to tell.
    TooSlow,
}

pub(super) type Checked = Result<(), Failure>;

pub(super) fn broken<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Broken(message.into()))
}

/// One request: its token, what it asks for and what it would be answered.
pub(super) struct Party {
    pub(super) token: Token,
    pub(super) fingerprint: Fingerprint,
    pub(super) record: Arc<Record>,
}

impl Party {
    /// An attempt of the request that all checks begin with.
    pub(super) fn same() -> Self {
        Self::asking(b"the request")
    }

    /// Another request under the same key.
    pub(super) fn other() -> Self {
        Self::asking(b"another request")
    }

    fn asking(request: &[u8]) -> Self {
        let token = Token::unique();
        let fingerprint = Fingerprint::from_parts(1, Sha256::digest(request).into());
        let body = RecordBody::Stored(Bytes::from(format!("the answer to {token:?}")));
        let record = Record::new(fingerprint, StatusCode::CREATED, [], body);
        Self {
            token,
            fingerprint,
            record: Arc::new(record),
        }
    }

    pub(super) fn claim(&self, lease: Duration) -> Claim {
        Claim::new(self.token, self.fingerprint, lease)
    }
}

/// A store under test, a key of it, and a length for leases and retentions.
pub(super) struct Bench {
    pub(super) store: Arc<dyn Store>,
    pub(super) key: StorageKey,
    pub(super) unit: Duration,
}

/// A key that no other check has.
pub(super) fn fresh_key() -> StorageKey {
    StorageKey::from_bytes(Sha256::digest(Token::unique().as_bytes()).into())
}

impl Bench {
    pub(super) fn new(store: Arc<dyn Store>, unit: Duration) -> Self {
        Self {
            store,
            key: fresh_key(),
            unit,
        }
    }

    /// The same store at a fresh key.
    pub(super) fn elsewhere(&self) -> Self {
        Self::new(Arc::clone(&self.store), self.unit)
    }

    pub(super) async fn claim(&self, party: &Party) -> Result<ClaimOutcome, Failure> {
        self.claim_for(party, LONG).await
    }

    pub(super) async fn claim_for(
        &self,
        party: &Party,
        lease: Duration,
    ) -> Result<ClaimOutcome, Failure> {
        answer("claim", self.store.claim(&self.key, party.claim(lease))).await
    }

    pub(super) async fn renew(&self, party: &Party) -> Result<RenewOutcome, Failure> {
        self.renew_for(party, LONG).await
    }

    pub(super) async fn renew_for(
        &self,
        party: &Party,
        lease: Duration,
    ) -> Result<RenewOutcome, Failure> {
        answer("renew", self.store.renew(&self.key, party.claim(lease))).await
    }

    pub(super) async fn complete(&self, party: &Party) -> Result<CompleteOutcome, Failure> {
        self.complete_for(party, LONG).await
    }

    pub(super) async fn complete_for(
        &self,
        party: &Party,
        retention: Duration,
    ) -> Result<CompleteOutcome, Failure> {
        let record = Arc::clone(&party.record);
        let step = self
            .store
            .complete(&self.key, party.token, record, retention);
        answer("complete", step).await
    }

    pub(super) async fn release(&self, party: &Party) -> Result<ReleaseOutcome, Failure> {
        answer("release", self.store.release(&self.key, party.token)).await
    }

    /// The record that stands, whoever asks.
    pub(super) async fn stands(&self, situation: &str, party: &Party) -> Checked {
        let wanted = ClaimOutcome::Completed(Arc::clone(&party.record));
        for asking in [Party::same(), Party::other()] {
            self.claim(&asking).await?.must_be(situation, &wanted)?;
        }
        Ok(())
    }

    /// Nothing stands. Nothing stands after it either.
    pub(super) async fn is_free(&self, situation: &str) -> Checked {
        let asking = Party::other();
        let found = self.claim(&asking).await?;
        found.must_be(situation, &ClaimOutcome::Claimed)?;
        self.release(&asking).await?;
        Ok(())
    }

    /// The claim of `holder` stands, whoever asks.
    pub(super) async fn is_held(&self, situation: &str, holder: &Party) -> Checked {
        for asking in [Party::same(), Party::other()] {
            let found = self.claim(&asking).await?;
            self.must_be_held(situation, &found, holder)?;
        }
        Ok(())
    }

    /// What a claim found is the claim of `holder`.
    pub(super) fn must_be_held(
        &self,
        situation: &str,
        found: &ClaimOutcome,
        holder: &Party,
    ) -> Checked {
        match found {
            ClaimOutcome::InProgress { fingerprint, .. }
                if *fingerprint == holder.fingerprint || self.store.level() == Level::Locked =>
            {
                Ok(())
            }
            ClaimOutcome::InProgress { .. }
            | ClaimOutcome::Lapsed { .. }
            | ClaimOutcome::Claimed
            | ClaimOutcome::Completed(_) => {
                let wanted = ClaimOutcome::InProgress {
                    fingerprint: holder.fingerprint,
                    lease_left: None,
                };
                found.must_be(situation, &wanted)
            }
        }
    }
}

/// Only what was seen less than `limit` after `start` tells anything.
pub(super) fn within(limit: Duration, start: Instant) -> Checked {
    if clock::now() - start < limit {
        Ok(())
    } else {
        Err(Failure::TooSlow)
    }
}

/// Sleeps until `percent` of `length` after `start` have passed.
pub(super) async fn until(start: Instant, length: Duration, percent: u32) {
    time::sleep_until(start + length * percent / 100).await;
}

pub(super) async fn answer<T>(
    command: &str,
    step: Step<Result<T, StoreError>>,
) -> Result<T, Failure> {
    match time::timeout(BOUND, step.answer()).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error)) => broken(format!("{command} failed: {error}")),
        Err(_) => broken(format!(
            "{command} was not answered within {BOUND:?}: a command may not wait for another request"
        )),
    }
}

/// An outcome that can be compared and put into words.
pub(super) trait Outcome: PartialEq {
    fn words(&self) -> String;

    fn must_be(&self, situation: &str, wanted: &Self) -> Checked {
        if self == wanted {
            return Ok(());
        }
        broken(format!(
            "{situation}: the store answered {}, the rule wants {}",
            self.words(),
            wanted.words()
        ))
    }
}

impl Outcome for ClaimOutcome {
    fn words(&self) -> String {
        match self {
            Self::Claimed => "Claimed".to_owned(),
            Self::Completed(record) => completed(record),
            Self::InProgress { fingerprint, .. } => {
                format!("InProgress {{ {} }}", short(fingerprint))
            }
            Self::Lapsed { fingerprint } => format!("Lapsed {{ {} }}", short(fingerprint)),
        }
    }
}

impl Outcome for RenewOutcome {
    fn words(&self) -> String {
        match self {
            Self::Completed(record) => completed(record),
            Self::Renewed | Self::Restored | Self::Lost => format!("{self:?}"),
        }
    }
}

impl Outcome for CompleteOutcome {
    fn words(&self) -> String {
        match self {
            Self::Completed(record) => completed(record),
            Self::Stored | Self::Displaced => format!("{self:?}"),
        }
    }
}

impl Outcome for ReleaseOutcome {
    fn words(&self) -> String {
        match self {
            Self::Completed(record) => completed(record),
            Self::Released | Self::NotHeld => format!("{self:?}"),
        }
    }
}

fn completed(record: &Record) -> String {
    let body = match &record.body {
        RecordBody::Stored(body) if body.len() <= 64 => format!("{body:?}"),
        RecordBody::Stored(body) => format!("{} bytes", body.len()),
        RecordBody::Unreplayable => "unreplayable".to_owned(),
    };
    let (status, headers) = (record.status.as_u16(), record.headers.len());
    let fingerprint = short(&record.fingerprint);
    format!("Completed {{ {fingerprint}, status {status}, {headers} headers, body {body} }}")
}

/// The scheme and the first bytes of a fingerprint.
fn short(fingerprint: &Fingerprint) -> impl fmt::Display {
    let [a, b, c, ..] = *fingerprint.digest();
    let scheme = fingerprint.scheme();
    format!("fingerprint {scheme}:{a:02x}{b:02x}{c:02x}..")
}
