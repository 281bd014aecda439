//! 32 requests at a time, beside the bare handler.

use std::time::{Duration, Instant};

use axum::extract::Request;

use super::{
    median,
    service::{Replica, fresh_key, request},
};

const ROUNDS: usize = 31;
const IN_FLIGHT: usize = 32;
/// Requests of one mode in one round, for each that is in flight.
const REQUESTS: usize = 64;
/// Keys that replays come for: so many that no two requests in flight have the same.
const KNOWN: u64 = (IN_FLIGHT * REQUESTS) as u64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bare,
    First,
    Replay,
}

const MODES: [Mode; 3] = [Mode::Bare, Mode::First, Mode::Replay];

pub(crate) async fn report(redis: &str) {
    let replica = Replica::start(redis).await;
    for key in 0..KNOWN {
        replica.send(request("/orders", known(key))).await;
    }
    let (mut first, mut replay) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let mut spent = [0.0; MODES.len()];
        for turn in 0..MODES.len() {
            let at = (turn + round) % MODES.len();
            spent[at] = measure(&replica, MODES[at]).await.as_secs_f64();
        }
        // The first round warms up.
        if round > 0 {
            first.push(spent[0] / spent[1]);
            replay.push(spent[0] / spent[2]);
        }
    }
    println!("RATIO first_c32 {:.3}", median(&mut first));
    println!("RATIO replay_c32 {:.3}", median(&mut replay));
}

async fn measure(replica: &Replica, mode: Mode) -> Duration {
    let before = replica.runs();
    // Built outside of the clock.
    let chunks: Vec<_> = (0..IN_FLIGHT).map(|_| build(mode)).collect();
    let start = Instant::now();
    let tasks: Vec<_> = chunks
        .into_iter()
        .map(|chunk| tokio::task::spawn(drive(replica.clone(), chunk)))
        .collect();
    for task in tasks {
        task.await.expect("the driver does not panic");
    }
    let spent = start.elapsed();
    let ran = usize::try_from(replica.runs() - before).expect("it fits");
    let expected = if mode == Mode::Replay {
        0
    } else {
        IN_FLIGHT * REQUESTS
    };
    assert_eq!(ran, expected);
    spent
}

async fn drive(replica: Replica, requests: Vec<Request>) {
    for request in requests {
        replica.send(request).await;
    }
}

fn build(mode: Mode) -> Vec<Request> {
    (0..REQUESTS)
        .map(|_| match mode {
            Mode::Bare => request("/bare", fresh_key()),
            Mode::First => request("/orders", fresh_key()),
            Mode::Replay => request("/orders", known(fresh_key() % KNOWN)),
        })
        .collect()
}

fn known(number: u64) -> u64 {
    (1 << 40) + number
}
