//! The claim, run, complete protocol of one idempotency key, as a finite model that is walked completely.
//!
//! The model holds one key: the slot that a store keeps for it, up to four requests on two replicas that want it, and a
//! budget of faults. Every order in which requests, store and faults can take their steps is tried, breadth first, so
//! that what a walk does not find cannot happen within the budget, and what it does find comes with a shortest trace.
//! The rules that the engine keeps are listed in [`rules::Rule`], each as one line and one switch: the tests show what
//! holds with all of them, and what comes back when one is taken out.
//!
//! # What is modelled
//!
//! * **Store**: a vacant slot, a claim (token, lease left) or a record (token). Each command is one atomic step.
//! * **Requests**: an original, duplicates of it, and requests with the same key and another body. Any may arrive at any
//!   time, which includes the client that tries again because it heard nothing. A run may succeed or fail.
//! * **Faults**, see [`faults::Faults`]: lost replies, an unreachable store, commands carried out late, crashes, pauses,
//!   a store that forgets, a stale follower taking over, retentions that end.
//! * **Time**: a lease is two ticks. It runs out by itself only when its holder is gone; a living holder loses it by the
//!   pause fault alone. Waits have no length: a waiter may time out whenever it waits.
//!
//! # What it shows
//!
//! A second run has one of five causes: the holder died, a living holder lost its lease, the store lost data, the
//! retention was over, or one of the two ran unguarded.
//! Fail-closed, and without such a loss, one key is one run and one answer, whatever the network does. Only a store that
//! commits the record together with the handler's own writes can promise more.
//!
//! # What is not modelled
//!
//! Two masters at once, more than one write lost at a failover, clocks, claims removed for want of memory, more than
//! four requests, and a second run under one token.

pub mod check;
pub mod properties;

mod steps;

mod offers;

mod disaster;
mod engine;

mod history;
mod store;

pub mod action;
pub mod protocol;
pub mod state;

pub mod request;

pub mod cast;
pub mod faults;
pub mod rules;

pub mod explore;
pub mod flags;
