//! A store that keeps every rule but one.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    StorageKey,
    store::{
        BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Fingerprint, Level, Record,
        ReleaseOutcome, RenewOutcome, Step, Store, StoreError, Token,
    },
};
use parking_lot::Mutex;
use tokio::{sync::Notify, task, time::Instant};

use crate::{
    flaw::{Command, Flaw},
    mangle::mangle,
};

#[derive(Clone)]
pub(crate) struct Flawed(Arc<Inner>);

struct Inner {
    level: Level,
    flaw: Option<Flaw>,
    slots: Mutex<HashMap<StorageKey, Slot>>,
    locked: AtomicBool,
}

#[derive(Clone)]
struct Slot {
    token: Token,
    since: Instant,
    lapses: Option<Instant>,
    ends: Option<Instant>,
    holds: Holds,
    waiters: Arc<Notify>,
}

#[derive(Clone)]
enum Holds {
    Claim(Fingerprint),
    Record(Arc<Record>),
    Tombstone,
}

type Answer<T> = Result<T, StoreError>;

impl Flawed {
    pub(crate) fn new(level: Level, flaw: Option<Flaw>) -> Self {
        Self(Arc::new(Inner {
            level,
            flaw,
            slots: Mutex::default(),
            locked: AtomicBool::new(false),
        }))
    }

    /// Carries a command out at once, or as its flaw says.
    fn carry_out<T: Send + 'static>(
        &self,
        command: Command,
        key: &StorageKey,
        act: impl FnOnce(&Inner, &StorageKey, Option<Slot>) -> Answer<T> + Send + 'static,
    ) -> Step<Answer<T>> {
        let inner = Arc::clone(&self.0);
        let key = inner.stored_key(key);
        let flaw = inner.flaw;
        if inner.locked.load(Ordering::Relaxed) {
            return Step::later(std::future::pending());
        }
        if flaw == Some(Flaw::LeavesItsLock(command)) {
            return Step::later(async move {
                inner.locked.store(true, Ordering::Relaxed);
                task::yield_now().await;
                inner.locked.store(false, Ordering::Relaxed);
                let found = inner.find(command, &key, None);
                act(&inner, &key, found)
            });
        }
        if flaw == Some(Flaw::LooksThenWrites(command)) {
            let found = inner.find(command, &key, None);
            return Step::later(async move {
                task::yield_now().await;
                act(&inner, &key, found)
            });
        }
        let found = inner.find(command, &key, None);
        Step::Now(act(&inner, &key, found))
    }
}

impl Inner {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn stored_key(&self, key: &StorageKey) -> StorageKey {
        let mut bytes = *key.as_bytes();
        if self.is(Flaw::KeysMix) {
            bytes[31] = 0;
        }
        StorageKey::from_bytes(bytes)
    }

    /// What stands, less what has expired.
    fn find(&self, command: Command, key: &StorageKey, asked: Option<Duration>) -> Option<Slot> {
        let slots = self.slots.lock();
        let slot = slots.get(key)?;
        let record = matches!(slot.holds, Holds::Record(_));
        let ends = match asked {
            Some(lease) if self.is(Flaw::LeaseOfTheAsker) && !record => Some(slot.since + lease),
            _ => slot.ends,
        };
        let expired = ends.is_some_and(|ends| ends <= Instant::now());
        let overlooked = self.is(Flaw::OverlooksExpiry(command))
            || (self.is(Flaw::LapsesOnlyForClaims) && command != Command::Claim && !record);
        (!expired || overlooked).then(|| slot.clone())
    }

    fn put(&self, key: &StorageKey, token: Token, holds: Holds, lasts: Option<Duration>) {
        let now = Instant::now();
        let mut slots = self.slots.lock();
        let waiters = slots.get(key).map(|slot| Arc::clone(&slot.waiters));
        let slot = Slot {
            token,
            since: now,
            lapses: None,
            ends: lasts.and_then(|lasts| now.checked_add(lasts)),
            holds,
            waiters: waiters.unwrap_or_default(),
        };
        slots.insert(*key, slot);
    }

    fn put_claim(&self, key: &StorageKey, claim: Claim) {
        let endless = if self.level == Level::Embedded {
            !self.is(Flaw::LapsesInOneProcess)
        } else {
            self.is(Flaw::LeaseWithoutEnd)
        };
        let lease = match self.is(Flaw::LeaseTooShort) {
            _ if endless => None,
            true => Some(claim.lease / 4),
            false => Some(claim.lease),
        };
        let kept = match claim.kept {
            _ if self.is(Flaw::KeepsNothing) => Duration::ZERO,
            _ if self.is(Flaw::KeepsWithoutEnd) => claim.kept * 10,
            _ => claim.kept,
        };
        let lasts = lease.map(|lease| lease.saturating_add(kept));
        self.put(key, claim.token, Holds::Claim(claim.fingerprint), lasts);
        if let Some(slot) = self.slots.lock().get_mut(key) {
            slot.lapses = lease.and_then(|lease| slot.since.checked_add(lease));
        }
    }

    fn wake(&self, slot: &Slot, missed: &[Flaw]) {
        if missed.iter().any(|&flaw| self.is(flaw)) {
            return;
        }
        if self.is(Flaw::WakesOne) {
            slot.waiters.notify_one();
        } else {
            slot.waiters.notify_waiters();
        }
    }

    fn claim(&self, key: &StorageKey, claim: Claim, found: Option<&Slot>) -> ClaimOutcome {
        let free = match found {
            None => !self.is(Flaw::NeverClaims),
            Some(slot) => match &slot.holds {
                Holds::Record(_) => self.is(Flaw::ClaimsOverRecords),
                Holds::Tombstone => false,
                Holds::Claim(_) if slot.token == claim.token => !self.is(Flaw::ForgetsItsToken),
                Holds::Claim(held) if *held == claim.fingerprint => {
                    self.is(Flaw::StealsFromTheSameRequest)
                }
                Holds::Claim(_) => self.is(Flaw::StealsFromAnotherRequest),
            },
        };
        if free {
            self.put_claim(key, claim);
            return ClaimOutcome::Claimed;
        }
        if let Some(Holds::Record(record)) = found.map(|slot| &slot.holds) {
            return ClaimOutcome::Completed(Arc::clone(record));
        }
        if self.is(Flaw::RefusesAndTakesOver) {
            self.put_claim(key, claim);
        }
        let leased = self.level != Level::Embedded;
        let lease_left = leased.then_some(Duration::from_millis(1));
        let fingerprint = match found.map(|slot| &slot.holds) {
            Some(Holds::Claim(held)) if !self.is(Flaw::TellsTheAsker) => *held,
            _ => claim.fingerprint,
        };
        let lapses = found.and_then(|slot| slot.lapses);
        if lapses.is_some_and(|lapses| lapses <= Instant::now()) {
            return ClaimOutcome::Lapsed { fingerprint };
        }
        ClaimOutcome::InProgress {
            fingerprint,
            lease_left: lease_left.filter(|_| !self.is(Flaw::HidesTheLease)),
        }
    }

    fn renew(&self, key: &StorageKey, claim: Claim, found: Option<&Slot>) -> RenewOutcome {
        let Some(slot) = found else {
            if self.is(Flaw::RenewalGivesUp) {
                return RenewOutcome::Lost;
            }
            self.put_claim(key, claim);
            if self.is(Flaw::RestoresWithoutEnd) {
                self.put(key, claim.token, Holds::Claim(claim.fingerprint), None);
            }
            return RenewOutcome::Restored;
        };
        if let Holds::Record(record) = &slot.holds {
            if self.is(Flaw::RenewsOverRecords) {
                self.put_claim(key, claim);
            }
            return RenewOutcome::Completed(Arc::clone(record));
        }
        if slot.token != claim.token {
            if self.is(Flaw::RenewalTakesOver) {
                self.put_claim(key, claim);
            }
            return RenewOutcome::Lost;
        }
        if self.is(Flaw::RenewalFrees) {
            self.slots.lock().remove(key);
        } else if self.is(Flaw::RenewsWithoutEnd) {
            self.put(key, claim.token, Holds::Claim(claim.fingerprint), None);
        } else if !self.is(Flaw::RenewalProlongsNothing) {
            self.put_claim(key, claim);
        }
        RenewOutcome::Renewed
    }

    fn refuses(&self, retention: Duration) -> Option<StoreError> {
        if self.is(Flaw::RefusesShortRetentions) && retention < Duration::from_millis(1) {
            return Some(StoreError::unavailable("an expiry of less than 1 ms"));
        }
        if self.is(Flaw::RefusesLongRetentions) && retention > Duration::from_hours(24) {
            return Some(StoreError::unavailable("an expiry of more than a day"));
        }
        None
    }

    fn complete(
        &self,
        key: &StorageKey,
        (token, record, retention): (Token, &Arc<Record>, Duration),
        found: Option<&Slot>,
    ) -> CompleteOutcome {
        let retention = if self.is(Flaw::RetentionTooShort) {
            retention / 4
        } else {
            retention
        };
        let store = || {
            let record = mangle(self.flaw, record);
            self.put(key, token, Holds::Record(record), Some(retention));
        };
        let Some(slot) = found else {
            if !self.is(Flaw::CompletesOnlyClaims) {
                store();
            }
            return CompleteOutcome::Stored;
        };
        match &slot.holds {
            Holds::Record(_) if slot.token == token && !self.is(Flaw::ForgetsWhoStored) => {
                if self.is(Flaw::RepeatsProlong) {
                    store();
                }
                CompleteOutcome::Stored
            }
            Holds::Record(_) if self.is(Flaw::LastSuccessWins) => {
                store();
                CompleteOutcome::Stored
            }
            Holds::Record(standing) => CompleteOutcome::Completed(Arc::clone(standing)),
            Holds::Claim(_) | Holds::Tombstone if slot.token == token => {
                if !self.is(Flaw::ForgetsItsRecord) {
                    store();
                }
                self.wake(slot, &[Flaw::WatchMissesCompletion]);
                CompleteOutcome::Stored
            }
            Holds::Claim(held) => {
                let fenced = if *held == record.fingerprint {
                    Flaw::FencedByAnAttempt
                } else {
                    Flaw::FencedByAnotherRequest
                };
                if !self.is(fenced) {
                    store();
                }
                self.wake(slot, &[Flaw::WatchMissesDisplacement]);
                if self.is(Flaw::HidesDisplacement) {
                    CompleteOutcome::Stored
                } else {
                    CompleteOutcome::Displaced
                }
            }
            Holds::Tombstone => CompleteOutcome::Displaced,
        }
    }

    fn release(&self, key: &StorageKey, token: Token, found: Option<&Slot>) -> ReleaseOutcome {
        let Some(slot) = found else {
            return if self.is(Flaw::ReleasesNothing) {
                ReleaseOutcome::Released
            } else {
                ReleaseOutcome::NotHeld
            };
        };
        if let Holds::Record(record) = &slot.holds {
            if self.is(Flaw::ReleaseDeletesRecords) {
                self.slots.lock().remove(key);
            }
            return ReleaseOutcome::Completed(Arc::clone(record));
        }
        let lapsed = slot.lapses.is_some_and(|lapses| lapses <= Instant::now());
        if self.is(Flaw::KeepsFromItsHolder) && lapsed {
            return ReleaseOutcome::NotHeld;
        }
        if slot.token != token && !self.is(Flaw::ReleaseIgnoresTheToken) {
            return ReleaseOutcome::NotHeld;
        }
        if self.is(Flaw::ReleaseLeavesATombstone) {
            self.put(key, token, Holds::Tombstone, None);
        } else {
            self.slots.lock().remove(key);
        }
        self.wake(slot, &[Flaw::WatchMissesRelease]);
        ReleaseOutcome::Released
    }
}

impl Store for Flawed {
    fn level(&self) -> Level {
        self.0.level
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Answer<ClaimOutcome>> {
        self.carry_out(Command::Claim, key, move |inner, key, found| {
            let found = match inner.flaw {
                Some(Flaw::LeaseOfTheAsker) => inner.find(Command::Claim, key, Some(claim.lease)),
                _ => found,
            };
            Ok(inner.claim(key, claim, found.as_ref()))
        })
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Answer<RenewOutcome>> {
        self.carry_out(Command::Renew, key, move |inner, key, found| {
            Ok(inner.renew(key, claim, found.as_ref()))
        })
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Answer<CompleteOutcome>> {
        self.carry_out(Command::Complete, key, move |inner, key, found| match inner
            .refuses(retention)
        {
            Some(error) => Err(error),
            None => Ok(inner.complete(key, (token, &record, retention), found.as_ref())),
        })
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Answer<ReleaseOutcome>> {
        self.carry_out(Command::Release, key, move |inner, key, found| {
            Ok(inner.release(key, token, found.as_ref()))
        })
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        let inner = Arc::clone(&self.0);
        let key = inner.stored_key(key);
        let slots = inner.slots.lock();
        let waiters = slots.get(&key).and_then(|slot| match slot.holds {
            Holds::Claim(_) | Holds::Tombstone => Some(Arc::clone(&slot.waiters)),
            Holds::Record(_) => None,
        });
        drop(slots);
        Some(match waiters {
            None if inner.is(Flaw::WatchOfNothingHangs) => Box::pin(std::future::pending()),
            None => Box::pin(std::future::ready(())),
            Some(waiters) if inner.is(Flaw::WatchBeginsWithItsPoll) => {
                Box::pin(async move { waiters.notified().await })
            }
            Some(waiters) => Box::pin(waiters.notified_owned()),
        })
    }
}
