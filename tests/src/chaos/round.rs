//! One round: copies, clients and faults, then peace, then the judge.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use futures_util::{StreamExt, stream};
use tokio::task::JoinSet;

use super::{
    client::{Client, send},
    fault::{Fault, LEASE, STORE_TIMEOUT, watch_machine},
    history::{Attempt, Ms, Outcome},
    judge::{Counts, Evidence, Verdict},
    random::Random,
    time::{now, pause},
    world::{Mode, World, rows},
};

/// How many clients call at a time.
const CLIENTS: usize = 24;
/// Longer than a store is taken for down after it has come back, so that faults can be told apart.
const PEACE: (Ms, Ms) = (2100, 2800);

/// What a round is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Begins the keys.
    pub name: &'static str,
    /// What the copies do when Redis fails.
    pub mode: Mode,
    /// Decides all choices.
    pub seed: u64,
    /// It goes on, with another set of faults each time, until so many have begun.
    pub operations: usize,
}

/// What a round was.
#[derive(Debug)]
pub struct Report {
    plan: Plan,
    /// How many orders were to be created.
    pub operations: usize,
    /// How many requests were sent for them.
    pub attempts: usize,
    /// How many of those got no answer, or a refusal to be retried.
    pub failed: usize,
    /// How many rows there are.
    pub rows: usize,
    /// Keys in Redis that would never expire.
    pub everlasting: usize,
    took: Ms,
    /// What the judge says.
    pub verdict: Verdict,
}

/// Plays a round.
///
/// # Panics
///
/// Where something cannot be started, or a client dies.
pub async fn round(plan: Plan) -> Report {
    let start = now();
    let dir = tempfile::tempdir().expect("a directory");
    let lease = format!("{LEASE}ms");
    let timeout = format!("{STORE_TIMEOUT}ms");
    let args = ["--lease", &lease, "--store-timeout", &timeout];
    let world = Arc::new(World::start(plan.name, plan.mode, &args, dir.path()));
    let mut random = Random::new(plan.seed);

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let client = Client::new(Arc::clone(&world), random.fork(), number);
        clients.spawn(client.run(Arc::clone(&stop)));
    }
    let wreck = async {
        pause(1000).await;
        while world.history.operations() < plan.operations {
            for fault in Fault::all(&mut random, world.copies.len()) {
                fault.strike(&world).await;
                pause(random.between(PEACE.0, PEACE.1)).await;
            }
        }
        stop.store(true, Relaxed);
        // What was begun is ended.
        while let Some(ended) = clients.join_next().await {
            ended.expect("a client that lives");
        }
    };
    tokio::select! {
        () = wreck => {}
        () = watch_machine(&world.history) => {}
    }
    world.settle().await;
    let evidence = gather(&world, &mut random).await;
    let past = &evidence.past;
    let attempts = || {
        past.operations
            .values()
            .flat_map(|operation| &operation.attempts)
    };
    let created = |outcome: &Outcome| matches!(outcome, Outcome::Created { .. });
    Report {
        operations: past.operations.len(),
        attempts: attempts().count(),
        failed: attempts()
            .filter(|attempt| !created(&attempt.outcome))
            .count(),
        rows: evidence.rows.len(),
        everlasting: world.everlasting(),
        took: now() - start,
        verdict: evidence.judge(),
        plan,
    }
}

/// Asks two copies for each key once more, then for the rows and the counts.
async fn gather(world: &World, random: &mut Random) -> Evidence {
    let mut past = world.history.past();
    let urls: Vec<_> = world
        .copies
        .iter()
        .map(|copy| copy.url().expect("it lives"))
        .collect();
    let mut copy = || random.below(urls.len());
    let asked = past
        .operations
        .iter_mut()
        .map(|(key, operation)| (key, operation, copy(), copy()));
    stream::iter(asked)
        .for_each_concurrent(CLIENTS, |(key, operation, one, two)| async move {
            for copy in [one, two] {
                operation.replays.push(replay(world, copy, key).await);
            }
        })
        .await;
    let mut counts = Counts::default();
    for url in &urls {
        let address = url.trim_start_matches("http://").to_owned();
        let failed = r#"idempotency_degraded{operation="claim"}"#;
        counts
            .failed_claims
            .insert(address, world.metric(url, failed).await);
        counts.double_effects += world.metric(url, "idempotency_double_effect").await;
    }
    Evidence {
        mode: world.mode,
        past,
        rows: rows(&world.http, &urls[0]).await,
        counts,
    }
}

/// What a copy answers in peace; a record that Redis has lost is made anew, after the failures that
/// the order may ask for.
async fn replay(world: &World, copy: usize, key: &str) -> Attempt {
    let mut attempt = send(world, copy, key, 5000).await;
    for _ in 0..2 {
        if !matches!(attempt.outcome, Outcome::Refused(_)) {
            break;
        }
        attempt = send(world, copy, key, 5000).await;
    }
    attempt
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { mode, seed, .. } = self.plan;
        let verdict = &self.verdict;
        let (least, counted) = verdict.double_effects;
        write!(
            f,
            "{mode}, seed {seed}: {} operations ({} calm), {} requests ({} in vain), {} rows, {} unguarded, {counted} double effects counted (at least {least}), in {} s; excused: {:?}; broken: {}",
            self.operations,
            verdict.calm,
            self.attempts,
            self.failed,
            self.rows,
            verdict.unguarded,
            self.took / 1000,
            verdict.excused,
            verdict.broken.len(),
        )
    }
}
