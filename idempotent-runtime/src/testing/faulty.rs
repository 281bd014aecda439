//! A store that fails when the test says so.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    future::pending,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, task, time};

use crate::{
    key::StorageKey,
    record::{Record, Token},
    store::{
        BoxFuture, Claim, ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step,
        Store, StoreError,
    },
};

/// A command of a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`Store::claim`].
    Claim,
    /// [`Store::renew`].
    Renew,
    /// [`Store::complete`].
    Complete,
    /// [`Store::release`].
    Release,
    /// [`Store::probe`].
    Probe,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Release,
        Self::Probe,
    ];
}

/// What goes wrong with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is not carried out; the caller hears an error.
    Fail,
    /// It is carried out, but the caller hears an error.
    LoseReply,
    /// It is carried out and answered after this long, unless the caller gives up before.
    Delay(Duration),
    /// The caller hears an error at once; it is carried out after this long all the same.
    Late(Duration),
    /// It is neither carried out nor ever answered.
    Hang,
}

/// Wraps a store; fails, delays, or loses the reply of commands as the test says.
///
/// Clones share the store and the script, so that a test keeps control of what it gave to a
/// runtime. Without a fault every command passes unchanged.
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::{
///     MemoryStore, StorageKey,
///     store::{Claim, ClaimOutcome, Fingerprint, Store, Token},
///     testing::{Fault, Faulty, Operation},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Faulty::new(MemoryStore::new());
/// store.next(Operation::Claim, Fault::LoseReply);
///
/// let key = StorageKey::from_bytes([7; 32]);
/// let claim = Claim::new(Token::unique(), Fingerprint::from_parts(1, [0; 32]), Duration::from_secs(30));
/// assert!(store.claim(&key, claim).answer().await.is_err());
///
/// // It was carried out, and repeated with the same token it is acquired.
/// let claimed = store.claim(&key, claim).answer().await.unwrap();
/// assert_eq!(claimed, ClaimOutcome::Claimed);
/// assert_eq!(store.seen(Operation::Claim), 2);
/// # }
/// ```
pub struct Faulty<S> {
    store: Arc<S>,
    script: Arc<Mutex<Script>>,
}

type Answer<T> = Result<T, StoreError>;

#[derive(Default)]
struct Script {
    next: HashMap<Operation, VecDeque<Option<Fault>>>,
    always: HashMap<Operation, Fault>,
    seen: HashMap<Operation, usize>,
    awaits: bool,
    unwatched: bool,
}

impl<S: Store> Faulty<S> {
    /// A store without faults as yet.
    pub fn new(store: S) -> Self {
        Self {
            store: Arc::new(store),
            script: Arc::default(),
        }
    }

    /// Makes every command await before it is carried out, so that a store in memory takes the
    /// path of one behind a network. Holds for all clones.
    #[must_use]
    pub fn awaiting(self) -> Self {
        self.script.lock().awaits = true;
        self
    }

    /// Watches nothing, so that waiters poll. Holds for all clones.
    #[must_use]
    pub fn unwatched(self) -> Self {
        self.script.lock().unwatched = true;
        self
    }

    /// The next command of this kind that has none yet gets this fault.
    pub fn next(&self, operation: Operation, fault: Fault) {
        let mut script = self.script.lock();
        script
            .next
            .entry(operation)
            .or_default()
            .push_back(Some(fault));
    }

    /// The next command of this kind that has none yet passes, before the faults that are still
    /// to be added.
    pub fn pass(&self, operation: Operation) {
        let mut script = self.script.lock();
        script.next.entry(operation).or_default().push_back(None);
    }

    /// Every command of this kind gets this fault, once those of [`next`](Self::next) are used up.
    pub fn always(&self, operation: Operation, fault: Fault) {
        self.script.lock().always.insert(operation, fault);
    }

    /// Every command gets this fault.
    pub fn down(&self, fault: Fault) {
        for operation in Operation::ALL {
            self.always(operation, fault);
        }
    }

    /// Takes all faults back. Counts go on, and a command under way keeps its own.
    pub fn heal(&self) {
        let mut script = self.script.lock();
        script.next.clear();
        script.always.clear();
    }

    /// How many commands of this kind were sent, failed ones included.
    #[must_use]
    pub fn seen(&self, operation: Operation) -> usize {
        let script = self.script.lock();
        script.seen.get(&operation).copied().unwrap_or_default()
    }

    /// The store within.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    fn send<T: Send + 'static>(
        &self,
        operation: Operation,
        command: impl FnOnce(&S) -> Step<Answer<T>> + Send + 'static,
    ) -> Step<Answer<T>> {
        let (fault, awaits) = self.script.lock().sent(operation);
        let store = Arc::clone(&self.store);
        let failed = move || {
            Err(StoreError::unavailable(format!(
                "{operation:?} was made to fail"
            )))
        };
        match (fault, awaits) {
            (None, false) => command(&store),
            (None, true) => Step::later(async move {
                task::yield_now().await;
                command(&store).answer().await
            }),
            (Some(Fault::Fail), false) => Step::Now(failed()),
            (Some(Fault::Fail), true) => Step::later(async move {
                task::yield_now().await;
                failed()
            }),
            (Some(Fault::LoseReply), _) => match command(&store) {
                Step::Now(_) if !awaits => Step::Now(failed()),
                step @ (Step::Now(_) | Step::Later(_)) => Step::later(async move {
                    task::yield_now().await;
                    drop(step.answer().await);
                    failed()
                }),
            },
            (Some(Fault::Delay(pause)), _) => Step::later(async move {
                time::sleep(pause).await;
                command(&store).answer().await
            }),
            (Some(Fault::Late(pause)), _) => {
                drop(Handle::current().spawn(async move {
                    time::sleep(pause).await;
                    command(&store).answer().await
                }));
                Step::Now(failed())
            }
            (Some(Fault::Hang), _) => Step::later(pending()),
        }
    }
}

impl Script {
    fn sent(&mut self, operation: Operation) -> (Option<Fault>, bool) {
        *self.seen.entry(operation).or_default() += 1;
        let next = self.next.get_mut(&operation).and_then(VecDeque::pop_front);
        let fault = next.unwrap_or_else(|| self.always.get(&operation).copied());
        (fault, self.awaits)
    }
}

impl<S: Store> Store for Faulty<S> {
    fn level(&self) -> Level {
        self.store.level()
    }

    fn claim(&self, key: &StorageKey, claim: Claim) -> Step<Answer<ClaimOutcome>> {
        let key = *key;
        self.send(Operation::Claim, move |store| store.claim(&key, claim))
    }

    fn renew(&self, key: &StorageKey, claim: Claim) -> Step<Answer<RenewOutcome>> {
        let key = *key;
        self.send(Operation::Renew, move |store| store.renew(&key, claim))
    }

    fn complete(
        &self,
        key: &StorageKey,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Step<Answer<CompleteOutcome>> {
        let key = *key;
        self.send(Operation::Complete, move |store| {
            store.complete(&key, token, record, retention)
        })
    }

    fn release(&self, key: &StorageKey, token: Token) -> Step<Answer<ReleaseOutcome>> {
        let key = *key;
        self.send(Operation::Release, move |store| store.release(&key, token))
    }

    fn watch(&self, key: &StorageKey) -> Option<BoxFuture<()>> {
        if self.script.lock().unwatched {
            return None;
        }
        self.store.watch(key)
    }

    fn probe(&self) -> Step<Answer<()>> {
        self.send(Operation::Probe, Store::probe)
    }
}

impl<S> Clone for Faulty<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            script: Arc::clone(&self.script),
        }
    }
}

impl<S> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}
