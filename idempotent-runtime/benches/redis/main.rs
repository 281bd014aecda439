//! What the guarantee costs over Redis, and what an outage of Redis costs.
//!
//! Starts servers of its own, which keep nothing on disk. Wall time, because a server and the
//! network between take part in it; what is compared takes turns in one run.
//!
//! | line | is | bar |
//! |---|---|---|
//! | `RTT first`, `RTT replay` | round trips of one request | 2, 1 |
//! | `RATIO first_vs_ping`, `replay_vs_ping` | median latency over that of a `PING` on a connection of its own | at most 3.5, 2.2 |
//! | the same with `_4k`, `_256k` | with responses of that size, in place of 200 bytes | |
//! | `RATIO first_c32`, `replay_c32` | throughput over that of the bare handler, 32 requests at a time | at least 0.12, 0.30 |
//! | `MS wake_p50`, `wake_p99` | from a handler's end on one replica to the answer of a duplicate that waits on another | at most 2, 15 |
//! | `RTT burst8` | round trips of 8 duplicates over two replicas at once, the most in any burst | at most 10 |
//! | `MS outage_dead_p99` | latency while the server is dead, from the second request on | under 1 |
//! | `MS outage_hung_max` | the longest latency while the server hangs | at most 110 |
//! | `MS recovery_dead`, `_hung`, `_blackhole` | from the end of the outage until requests are guarded again, the longest | at most 2000 |
//!
//! `cargo bench --bench redis --features redis -- load` runs one part: `trips`, `latency`, `load`,
//! `wake`, `outage`.
//!
//! Round trips are counted at the server: `total_reads_processed` of `INFO stats`. What is sent at
//! once, in one pipeline, it reads at once.
#![expect(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics where it cannot measure"
)]

mod latency;
mod load;
mod outage;
mod trips;
mod wake;

mod service;

mod proxy;
mod server;

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::runtime::{Builder, Runtime};

use self::server::Server;

fn main() {
    // `cargo test` and `cargo bench -- --list` run benchmarks too, to see that they start.
    if std::env::args().any(|arg| arg == "--test" || arg == "--list") {
        return;
    }
    PrometheusBuilder::new()
        .install_recorder()
        .expect("no recorder is installed yet");
    let server = Server::start();
    let tokio = workers(2);
    if asked_for("trips") {
        tokio.block_on(trips::report(&server.url()));
    }
    if asked_for("latency") {
        tokio.block_on(latency::report(&server.url()));
    }
    if asked_for("load") {
        tokio.block_on(load::report(&server.url()));
    }
    if asked_for("wake") {
        wake::report(&server.url());
    }
    drop(server);
    if asked_for("outage") {
        tokio.block_on(outage::report());
    }
}

/// Whether this part is wanted: all are, unless some are named on the command line.
fn asked_for(part: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let mut any = false;
    named.any(|name| {
        any = true;
        name == part
    }) || !any
}

fn workers(threads: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// The value that this share of the others is below.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}

fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50)
}
