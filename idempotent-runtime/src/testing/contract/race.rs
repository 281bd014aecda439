//! Many at once: every command is one atomic step.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{
    Failure,
    bench::{Bench, Checked, Party, broken, until},
};
use crate::{
    clock,
    store::{ClaimOutcome, CompleteOutcome},
};

super::check_list! { "race":
    ALL of_claims_has_one_winner,
    LAPSING for_a_lapsed_claim_has_one_winner,
    FENCED of_completions_keeps_one_record,
}

const PARTIES: usize = 50;
const ROUNDS: usize = 10;

/// How many of many claims at once were granted. Nothing stands after them.
async fn winners(bench: &Arc<Bench>) -> Result<usize, Failure> {
    let mut claims = JoinSet::new();
    for _ in 0..PARTIES {
        let bench = Arc::clone(bench);
        claims.spawn(async move {
            let party = Party::same();
            let found = bench.claim(&party).await;
            (party, found)
        });
    }
    let mut winners = Vec::new();
    while let Some(Ok((party, found))) = claims.join_next().await {
        if found? == ClaimOutcome::Claimed {
            winners.push(party);
        }
    }
    for winner in &winners {
        bench.release(winner).await?;
    }
    Ok(winners.len())
}

fn must_be_one(situation: &str, winners: usize) -> Checked {
    if winners == 1 {
        return Ok(());
    }
    broken(format!(
        "{situation}: the store answered Claimed to {winners} of {PARTIES}, the rule wants one"
    ))
}

async fn of_claims_has_one_winner(bench: Bench) -> Checked {
    for _ in 0..ROUNDS {
        let bench = Arc::new(bench.elsewhere());
        must_be_one("claims on an empty key at once", winners(&bench).await?)?;
    }
    Ok(())
}

async fn for_a_lapsed_claim_has_one_winner(bench: Bench) -> Checked {
    bench.claim_for(&Party::same(), bench.unit).await?;
    until(clock::now(), bench.unit, 120).await;
    let winners = winners(&Arc::new(bench)).await?;
    must_be_one("claims at once after another's lease", winners)
}

async fn of_completions_keeps_one_record(bench: Bench) -> Checked {
    for _ in 0..ROUNDS {
        let bench = Arc::new(bench.elsewhere());
        let mut completions = JoinSet::new();
        for _ in 0..PARTIES {
            let bench = Arc::clone(&bench);
            completions.spawn(async move {
                let party = Party::same();
                let outcome = bench.complete(&party).await;
                (party, outcome)
            });
        }
        let mut stored = Vec::new();
        let mut returned = Vec::new();
        while let Some(Ok((party, outcome))) = completions.join_next().await {
            match outcome? {
                CompleteOutcome::Stored | CompleteOutcome::Displaced => stored.push(party),
                CompleteOutcome::Completed(record) => returned.push(record),
            }
        }
        let [winner] = &*stored else {
            return broken(format!(
                "completions at once: the store answered Stored to {} of {PARTIES}, the rule wants one",
                stored.len()
            ));
        };
        if returned.iter().any(|record| *record != winner.record) {
            return broken(
                "completions at once: the store returned a record that was not stored, the rule wants the first success",
            );
        }
        bench.stands("after completions at once", winner).await?;
    }
    Ok(())
}
