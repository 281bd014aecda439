//! The Redis store, on servers of its own.

mod contract;
mod servers;
