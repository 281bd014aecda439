//! Faults of every kind, drawn by a seed.
//!
//! `CHAOS_SEED=n` draws the same again; `CHAOS_OPERATIONS=n` goes on until there were so many.

use std::{
    env,
    hash::{BuildHasher, RandomState},
};

use idempotent_tests::chaos::{Mode, Plan, round};

/// What the short mode asks for, over both rounds.
const OPERATIONS: usize = 5000;

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn no_key_runs_twice_but_in_a_documented_case() {
    let _machine = crate::MACHINE.lock().await;
    let seed = number("CHAOS_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    let operations = number("CHAOS_OPERATIONS").map_or(OPERATIONS, |operations| {
        usize::try_from(operations).expect("a number of operations")
    });
    println!("CHAOS_SEED={seed}");

    let plan = |mode, name| Plan {
        name,
        mode,
        seed,
        operations: operations / 2,
    };
    // Each has a Redis of its own.
    let rounds = tokio::join!(
        round(plan(Mode::Open, "open")),
        round(plan(Mode::Closed, "closed"))
    );
    let reports = [rounds.0, rounds.1];
    for report in &reports {
        println!("{report}");
    }
    for report in &reports {
        let broken = &report.verdict.broken;
        let some: Vec<_> = broken.iter().take(5).map(String::as_str).collect();
        assert!(
            broken.is_empty(),
            "CHAOS_SEED={seed}: {report}, such as\n\n{}",
            some.join("\n\n")
        );
        assert_eq!(report.everlasting, 0, "keys without an expiry");
        // What was promised for calm times was put to the test.
        assert!(report.verdict.calm > report.operations / 10, "{report}");
        assert!(report.failed > 100, "the faults hit nobody: {report}");
    }
    let total: usize = reports.iter().map(|report| report.operations).sum();
    assert!(total >= operations, "only {total} operations");
}
