//! The Redis store, on servers of its own.

mod bench;
mod fake;

mod access;
mod cancel;
mod contract;
mod foreign;
mod full;
mod lost;
mod outage;
mod round_trips;
mod scripts;
mod servers;
mod start;
mod stored;
mod watching;
