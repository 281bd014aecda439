//! What the attribute costs, as ratios to the same handler without it in the same run.
//!
//! Process CPU time, because wall time flaps on shared machines; rounds of all modes interleaved,
//! medians of the ratios of one round; on one and on two workers, of which the worse is printed;
//! a metrics recorder is installed. `RATIO <name> <value>` is the bare handler's CPU time over
//! that of the mode, so higher is better.
#![expect(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics where it cannot measure"
)]

mod memory;
mod service;

use std::time::Duration;

use axum::{Router, extract::Request};
use cpu_time::{ProcessTime, ThreadTime};
use idempotent_runtime::{Caller, IdempotencyRuntime, MemoryStore};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use self::service::Key;

const ROUNDS: usize = 15;
const REQUESTS: usize = 8_000;
/// Requests are built this many at a time, outside of the clock, so that they are warm.
const CHUNK: usize = 32;

struct Mode {
    name: &'static str,
    path: &'static str,
    key: Key,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "bare",
        path: "/bare",
        key: Key::Absent,
    },
    Mode {
        name: "no_key",
        path: "/orders",
        key: Key::Absent,
    },
    Mode {
        name: "first",
        path: "/orders",
        key: Key::Fresh,
    },
    Mode {
        name: "replay",
        path: "/orders",
        key: Key::Known,
    },
];

fn main() {
    // `cargo test` and `cargo bench -- --list` run benchmarks too, to see that they start.
    if std::env::args().any(|arg| arg == "--test" || arg == "--list") {
        return;
    }
    PrometheusBuilder::new()
        .install_recorder()
        .expect("no recorder is installed yet");
    IdempotencyRuntime::builder()
        .caller(Caller::authorization())
        .store(MemoryStore::new().max_bytes(4 << 30))
        .build()
        .and_then(|runtime| runtime.install())
        .expect("the settings are valid");
    let app = service::router();
    for in_flight in [1, 32] {
        let one = ratios(
            &Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            &app,
            in_flight,
        );
        let two = ratios(&two_workers(), &app, in_flight);
        for ((mode, one), two) in MODES.iter().zip(one).zip(two).skip(1) {
            let name = if in_flight == 1 {
                mode.name.to_owned()
            } else {
                format!("{}_c{in_flight}", mode.name)
            };
            println!("RATIO {name} {:.3}", one.min(two));
        }
    }
    memory::report();
}

fn two_workers() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// The bare handler's CPU time over that of each mode.
fn ratios(runtime: &Runtime, app: &Router, in_flight: usize) -> Vec<f64> {
    let mut rounds = vec![Vec::new(); MODES.len()];
    for round in 0..=ROUNDS {
        let mut spent = [Duration::ZERO; MODES.len()];
        for turn in 0..MODES.len() {
            let at = if round % 2 == 0 {
                turn
            } else {
                MODES.len() - 1 - turn
            };
            spent[at] = measure(runtime, app, &MODES[at], in_flight);
        }
        // The first round warms up.
        for (ratios, spent_here) in rounds.iter_mut().zip(spent).filter(|_| round > 0) {
            ratios.push(spent[0].as_secs_f64() / spent_here.as_secs_f64());
        }
    }
    rounds.iter_mut().map(|ratios| median(ratios)).collect()
}

fn measure(runtime: &Runtime, app: &Router, mode: &'static Mode, in_flight: usize) -> Duration {
    let app = app.clone();
    // The driver is a task, as a connection is.
    let drive = async move {
        if in_flight == 1 {
            return drive(app, mode, REQUESTS).await.0;
        }
        let start = ProcessTime::now();
        let tasks: Vec<_> = (0..in_flight)
            .map(|_| tokio::task::spawn(drive(app.clone(), mode, REQUESTS / in_flight)))
            .collect();
        let mut building = Duration::ZERO;
        for task in tasks {
            building += task.await.expect("the driver does not panic").1;
        }
        start.elapsed().saturating_sub(building)
    };
    runtime
        .block_on(runtime.spawn(drive))
        .expect("the driver does not panic")
}

/// Sends requests; the CPU time of the process while they were answered, and of building them.
async fn drive(mut app: Router, mode: &'static Mode, requests: usize) -> (Duration, Duration) {
    let (mut answering, mut building) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..requests / CHUNK {
        let (chunk, spent) = build(mode);
        building += spent;
        let start = ProcessTime::now();
        for request in chunk {
            let response = app.call(request).await.expect("a router is infallible");
            assert_eq!(response.status(), 201);
        }
        answering += start.elapsed();
    }
    (answering, building)
}

/// A chunk of requests, and the CPU time that this thread spent on them.
fn build(mode: &Mode) -> (Vec<Request>, Duration) {
    let start = ThreadTime::now();
    let chunk = (0..CHUNK)
        .map(|_| service::request(mode.path, mode.key))
        .collect();
    (chunk, start.elapsed())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
