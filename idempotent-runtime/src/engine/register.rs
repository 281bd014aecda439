//! What this process does for each key now, so that its own duplicates need no store: the first
//! asks, the others follow it. Without it a store that cannot be reached would let them all run.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
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
pub(super) struct Register(Mutex<HashMap<StorageKey, Arc<Seat>>>);

struct Seat {
    key: StorageKey,
    fingerprint: Fingerprint,
    state: watch::Sender<State>,
}

/// What a request finds in its process.
pub(super) enum Found {
    /// Nothing: it is the first.
    First(Place),
    /// Another one, whose progress can be followed.
    Other(Fingerprint, watch::Receiver<State>),
}

impl Register {
    pub(super) fn enter(self: &Arc<Self>, key: StorageKey, fingerprint: Fingerprint) -> Found {
        match self.0.lock().entry(key) {
            Entry::Occupied(taken) => {
                let seat = taken.get();
                Found::Other(seat.fingerprint, seat.state.subscribe())
            }
            Entry::Vacant(free) => {
                let seat = Arc::new(Seat {
                    key,
                    fingerprint,
                    state: watch::Sender::new(State::Asking),
                });
                free.insert(Arc::clone(&seat));
                Found::First(Place {
                    register: Arc::clone(self),
                    seat,
                })
            }
        }
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
        self.seat.state.send_replace(State::Standing { elsewhere });
    }

    /// Its client is answered before the store has been told.
    pub(super) fn answered(&self, record: Arc<Record>) {
        self.seat.state.send_replace(State::Answered(record));
    }

    /// It is over. `record` answers whoever follows; without one they ask the store themselves.
    pub(super) fn leave(self, record: Option<Arc<Record>>) {
        self.gone(record);
    }

    fn gone(&self, record: Option<Arc<Record>>) {
        let mut places = self.register.0.lock();
        if let Entry::Occupied(taken) = places.entry(self.seat.key)
            && Arc::ptr_eq(taken.get(), &self.seat)
        {
            taken.remove();
        } else {
            return;
        }
        drop(places);
        self.seat.state.send_modify(|state| {
            let elsewhere = matches!(state, State::Standing { elsewhere: true });
            *state = State::Gone { record, elsewhere };
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gone(None);
    }
}
