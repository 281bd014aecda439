//! For tests of stores, and of services whose store fails (feature `testing`).
//!
//! * [`contract`] checks that a store keeps the rules of the [`store`](crate::store) module.
//! * [`Faulty`] wraps a store and fails, delays or loses replies as the test says.
//! * [`LeasedStore`] is a shared store without a server: its clones are replicas on one store.

mod contract;
mod faulty;
mod leased;

pub use self::{
    contract::{Violation, checks, contract, violations},
    faulty::{Fault, Faulty, Operation},
    leased::LeasedStore,
};
