//! The same handler under this library and under others, in one process and one run.
//!
//! `RATIO <column> <variant> <value>` is the variant's throughput over that of the bare handler, so
//! higher is better: by the lower quartiles of rounds in which all variants took turns, and by the wall
//! clock, because a store's server spends its time elsewhere. The columns: requests without a key,
//! with a new one, with a known one; one at a time, and with `_c32` 32 at a time.
//! `AHEAD <column> <peer> yes` where this library, over the same kind of store, is at least as fast.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics where it cannot measure"
)]

#[expect(
    dead_code,
    reason = "another benchmark stops and kills its servers too"
)]
#[path = "../../idempotent-runtime/benches/redis/server.rs"]
mod server;

mod service;
mod variant;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use axum::{Router, extract::Request, http::StatusCode};
use tower::{Service as _, ServiceExt as _};

use self::{
    server::Server,
    variant::{Kept, Variant},
};

const ROUNDS: usize = 61;
/// Requests of one variant in one round.
const REQUESTS: u64 = 1024;
/// Requests are built this many at a time, outside of the clock, so that they are warm.
const CHUNK: u64 = 32;
/// Keys that replays come for: so many that no two requests in flight have the same.
const KNOWN: u64 = REQUESTS;

/// Which key requests carry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Absent,
    Fresh,
    Known,
}

fn main() {
    // `cargo test` and `cargo bench -- --list` run benchmarks too, to see that they start.
    if std::env::args().any(|arg| arg == "--test" || arg == "--list") {
        return;
    }
    let server = Server::start();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    // The driver is a task, as a connection is.
    let driver = tokio.spawn(async move {
        let variants = variant::all(&server.url()).await;
        for variant in &variants {
            check(variant).await;
        }
        for (name, key) in [
            ("no_key", Key::Absent),
            ("first", Key::Fresh),
            ("replay", Key::Known),
        ] {
            // Without a key no store is asked, so which one is the same.
            let variants: Vec<_> = variants
                .iter()
                .filter(|variant| key != Key::Absent || variant.kept != Kept::InRedis)
                .collect();
            report(name, &variants, &column(&variants, key, 1).await);
            let name = format!("{name}_c32");
            report(&name, &variants, &column(&variants, key, 32).await);
        }
    });
    tokio.block_on(driver).expect("the driver does not panic");
}

/// That a variant does what it is measured for: a second request with a key is a replay.
async fn check(variant: &Variant) {
    for key in 0..KNOWN {
        for again in [false, true] {
            let request = service::request(Some(known(key)), variant.session);
            let response = variant.app.clone().oneshot(request).await;
            let response = response.expect("a router is infallible");
            assert_eq!(response.status(), StatusCode::CREATED, "{}", variant.name);
            let replayed = response.headers().contains_key(variant.replay_header);
            let expected = again && variant.kept != Kept::Nowhere;
            assert_eq!(replayed, expected, "{}", variant.name);
        }
    }
}

fn report(column: &str, variants: &[&Variant], ratios: &[f64]) {
    let rows = || variants.iter().zip(ratios).skip(1);
    for (variant, ratio) in rows() {
        println!("RATIO {column} {} {ratio:.3}", variant.name);
    }
    for (peer, theirs) in rows().filter(|(variant, _)| !variant.ours) {
        let (_, ours) = rows()
            .find(|(variant, _)| variant.ours && variant.kept == peer.kept)
            .expect("each kind of store is among ours");
        let ahead = if ours >= theirs { "yes" } else { "no" };
        println!("AHEAD {column} {} {ahead}", peer.name);
    }
}

/// The throughput of each variant over that of the first.
async fn column(variants: &[&Variant], key: Key, in_flight: u64) -> Vec<f64> {
    let mut rounds = vec![Vec::new(); variants.len()];
    for round in 0..=ROUNDS {
        for turn in 0..variants.len() {
            let at = (turn + round) % variants.len();
            if let (Some(rounds), Some(variant)) = (rounds.get_mut(at), variants.get(at)) {
                let spent = measure(variant, key, in_flight).await;
                // The first round warms up.
                rounds.extend((round > 0).then_some(spent.as_secs_f64()));
            }
        }
    }
    let typical: Vec<_> = rounds.iter_mut().map(|rounds| quartile(rounds)).collect();
    let bare = typical.first().copied().unwrap_or_default();
    typical.iter().map(|typical| bare / typical).collect()
}

/// How long the variant takes for the requests of one round.
async fn measure(variant: &Variant, key: Key, in_flight: u64) -> Duration {
    let before = variant.runs.load(Ordering::Relaxed);
    let mut spent = Duration::ZERO;
    for _ in 0..REQUESTS / (CHUNK * in_flight) {
        let mut chunks: Vec<_> = (0..in_flight).map(|_| build(variant, key)).collect();
        let start = Instant::now();
        if let [chunk] = &mut *chunks {
            send(variant.app.clone(), std::mem::take(chunk)).await;
        } else {
            let tasks: Vec<_> = chunks
                .into_iter()
                .map(|chunk| tokio::task::spawn(send(variant.app.clone(), chunk)))
                .collect();
            for task in tasks {
                task.await.expect("the driver does not panic");
            }
        }
        spent += start.elapsed();
    }
    let ran = variant.runs.load(Ordering::Relaxed) - before;
    let replays = key == Key::Known && variant.kept != Kept::Nowhere;
    assert_eq!(ran, if replays { 0 } else { REQUESTS }, "{}", variant.name);
    spent
}

async fn send(mut app: Router, requests: Vec<Request>) {
    for request in requests {
        let response = app.call(request).await.expect("a router is infallible");
        assert_eq!(response.status(), StatusCode::CREATED, "{response:?}");
    }
}

fn build(variant: &Variant, key: Key) -> Vec<Request> {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let from = SENT.fetch_add(CHUNK, Ordering::Relaxed);
    (from..from + CHUNK)
        .map(|sent| {
            let key = match key {
                Key::Absent => None,
                Key::Fresh => Some(sent),
                Key::Known => Some(known(sent % KNOWN)),
            };
            service::request(key, variant.session)
        })
        .collect()
}

fn known(number: u64) -> u64 {
    (1 << 40) + number
}

/// Nearly the least of the values: what other programs take of the machine is added on top.
fn quartile(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len() / 4)
        .copied()
        .expect("rounds were measured")
}
