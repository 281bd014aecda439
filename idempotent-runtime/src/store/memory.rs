//! The embedded store.
use super::*;
use std::{sync::Arc, time::Duration};
/// Records in the memory of this process.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore;
/// What a full store does.
#[derive(Debug, Clone, Copy)]
pub enum WhenFull {
    Evict,
    Refuse,
}
impl MemoryStore {
    pub fn new() -> Self {
        Self
    }
    pub fn max_bytes(self, _: usize) -> Self {
        self
    }
}
impl Store for MemoryStore {
    fn level(&self) -> Level {
        Level::Embedded
    }
    fn claim(&self, _: &StorageKey, _: Claim) -> Step<Result<ClaimOutcome, StoreError>> {
        Step::Now(Ok(ClaimOutcome::Claimed))
    }
    fn renew(&self, _: &StorageKey, _: Claim) -> Step<Result<RenewOutcome, StoreError>> {
        Step::Now(Ok(RenewOutcome::Renewed))
    }
    fn complete(
        &self,
        _: &StorageKey,
        _: Token,
        _: Arc<Record>,
        _: Duration,
    ) -> Step<Result<CompleteOutcome, StoreError>> {
        Step::Now(Ok(CompleteOutcome::Stored))
    }
    fn release(&self, _: &StorageKey, _: Token) -> Step<Result<ReleaseOutcome, StoreError>> {
        Step::Now(Ok(ReleaseOutcome::Released))
    }
}
