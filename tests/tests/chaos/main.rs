//! Replicas under fire: the real program in several copies over one Redis, killed, frozen and cut
//! off while clients retry.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints its seed"
)]

mod killed;
mod long;
mod replicas;

use tokio::sync::Mutex;

/// Held by each test here: they measure time, and each wants the whole machine.
static MACHINE: Mutex<()> = Mutex::const_new(());
