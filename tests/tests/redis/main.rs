//! The Redis store, on servers of its own.

mod servers;
