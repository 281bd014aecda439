//! What this process does for each key now, so that its own duplicates need no store: the first
//! asks, the others follow it. Without it a store that cannot be reached would let them all run.

use std::sync::Arc;

use hashbrown::{
    HashTable,
    hash_table::{Entry, OccupiedEntry},
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{fingerprint::Fingerprint, key::StorageKey, record::Record};

/// How the first request of this process at a key gets on.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Its claim is on its way.
    Asking,
    /// A claim of its request stands: that of another process which it waits for, or its own. Its
    /// own run may be unguarded too.
    Standing { elsewhere: bool },
    /// Its client has been answered; the store has not been told yet.
    Answered(Arc<Record>),
    /// Its request has been told to the store, answered from it, or has had no effect.
    Gone {
        record: Option<Arc<Record>>,
        /// Whether a claim of another process had been met.
        elsewhere: bool,
    },
}

/// The first requests of this process, by key.
#[derive(Default)]
pub(super) struct Register(Mutex<HashTable<Arc<Seat>>>);

struct Seat {
    key: StorageKey,
    fingerprint: Fingerprint,
    progress: Mutex<Progress>,
}

struct Progress {
    state: State,
    /// Wakes those who follow, from the first of them on: most requests have none.
    changed: Option<watch::Sender<()>>,
}

/// What a request finds in its process.
pub(super) enum Found {
    /// Nothing: it is the first.
    First(Place),
    /// Another one, whose progress can be followed.
    Other(Followed),
}

impl Register {
    pub(super) fn enter(self: &Arc<Self>, key: StorageKey, fingerprint: Fingerprint) -> Found {
        let mut seats = self.0.lock();
        match seats.entry(key.hash(), |seat| seat.key == key, |seat| seat.key.hash()) {
            Entry::Occupied(taken) => Found::Other(Followed::new(taken.get())),
            Entry::Vacant(free) => {
                let seat = Arc::new(Seat {
                    key,
                    fingerprint,
                    progress: Mutex::new(Progress {
                        state: State::Asking,
                        changed: None,
                    }),
                });
                free.insert(Arc::clone(&seat));
                Found::First(Place {
                    register: Arc::clone(self),
                    seat,
                })
            }
        }
    }

    /// Frees a seat; `false` where it has been freed before.
    fn free(&self, seat: &Arc<Seat>) -> bool {
        let mut seats = self.0.lock();
        let found = seats.find_entry(seat.key.hash(), |other| Arc::ptr_eq(other, seat));
        found.map(OccupiedEntry::remove).is_ok()
    }
}

/// The first request's place in the register, which others follow.
pub(super) struct Place {
    register: Arc<Register>,
    seat: Arc<Seat>,
}

impl Place {
    /// A claim of its request stands.
    pub(super) fn stands(&self, elsewhere: bool) {
        self.becomes(|_| State::Standing { elsewhere });
    }

    /// Its client is answered before the store has been told.
    pub(super) fn answered(&self, record: Arc<Record>) {
        self.becomes(|_| State::Answered(record));
    }

    /// It is over. `record` answers whoever follows; without one they ask the store themselves.
    pub(super) fn leave(self, record: Option<Arc<Record>>) {
        self.gone(record);
    }

    fn gone(&self, record: Option<Arc<Record>>) {
        if self.register.free(&self.seat) {
            self.becomes(|state| State::Gone {
                record,
                elsewhere: matches!(state, State::Standing { elsewhere: true }),
            });
        }
    }

    fn becomes(&self, next: impl FnOnce(&State) -> State) {
        let mut progress = self.seat.progress.lock();
        progress.state = next(&progress.state);
        if let Some(changed) = &progress.changed {
            changed.send_replace(());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gone(None);
    }
}

/// The first request, as another one of its key sees it.
pub(super) struct Followed {
    seat: Arc<Seat>,
    changed: watch::Receiver<()>,
}

impl Followed {
    fn new(seat: &Arc<Seat>) -> Self {
        let mut progress = seat.progress.lock();
        let changed = progress
            .changed
            .get_or_insert_with(|| watch::Sender::new(()));
        Self {
            changed: changed.subscribe(),
            seat: Arc::clone(seat),
        }
    }

    /// Which request it is.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.seat.fingerprint
    }

    /// How it gets on now.
    pub(super) fn state(&self) -> State {
        self.seat.progress.lock().state.clone()
    }

    /// Waits until it has got on since the last time.
    pub(super) async fn changed(&mut self) {
        // Its sender is in the seat, which is held here.
        drop(self.changed.changed().await);
    }
}
