//! Rule 5: what is expired is absent, and nothing is before.

use std::time::Duration;

use super::bench::{Bench, Checked, LONG, Outcome as _, Party, until, within};
use crate::{
    clock,
    store::{ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome},
};

super::check_list! { "expiry":
    ALL not_before_the_retention_is_over,
    ALL frees_the_key_for_any_request,
    ALL lets_another_complete,
    ALL leaves_nothing_to_release,
    FENCED leaves_nothing_to_renew,
    FENCED repeated_completion_keeps_the_first_retention,
    ALL of_a_record_with_hardly_any_retention,
    ALL of_a_record_with_the_longest_retention,
}

/// A record whose retention is over.
async fn expired(bench: &Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    bench.complete_for(&a, bench.unit).await?;
    until(clock::now(), bench.unit, 120).await;
    Ok(())
}

async fn not_before_the_retention_is_over(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let start = clock::now();
    bench.complete_for(&a, bench.unit).await?;
    until(start, bench.unit, 50).await;
    let stands = bench.stands("at half of its retention, a record", &a).await;
    within(bench.unit, start)?;
    stands
}

async fn frees_the_key_for_any_request(bench: Bench) -> Checked {
    expired(&bench).await?;
    let found = bench.claim(&Party::other()).await?;
    let situation = "a claim of another request where a record has expired";
    found.must_be(situation, &ClaimOutcome::Claimed)
}

async fn lets_another_complete(bench: Bench) -> Checked {
    expired(&bench).await?;
    let b = Party::other();
    let stored = bench.complete(&b).await?;
    let situation = "a completion where another's record has expired";
    stored.must_be(situation, &CompleteOutcome::Stored)?;
    bench
        .stands("after a completion over an expired record", &b)
        .await
}

async fn leaves_nothing_to_release(bench: Bench) -> Checked {
    expired(&bench).await?;
    let released = bench.release(&Party::same()).await?;
    let situation = "a release where a record has expired";
    released.must_be(situation, &ReleaseOutcome::NotHeld)
}

async fn leaves_nothing_to_renew(bench: Bench) -> Checked {
    expired(&bench).await?;
    let a = Party::same();
    let renewed = bench.renew(&a).await?;
    let situation = "a renewal where a record has expired";
    renewed.must_be(situation, &RenewOutcome::Restored)?;
    bench
        .is_held("after a renewal over an expired record", &a)
        .await
}

async fn repeated_completion_keeps_the_first_retention(bench: Bench) -> Checked {
    let a = Party::same();
    let start = clock::now();
    bench.complete_for(&a, bench.unit).await?;
    let answered = clock::now();
    bench.complete_for(&a, LONG).await?;
    within(bench.unit, start)?;
    until(answered, bench.unit, 120).await;
    bench
        .is_free("a claim after the first retention of a record that was completed twice")
        .await
}

async fn of_a_record_with_hardly_any_retention(bench: Bench) -> Checked {
    for retention in [Duration::ZERO, Duration::from_micros(1)] {
        let bench = bench.elsewhere();
        let a = Party::same();
        bench.claim(&a).await?;
        let situation = format!("a completion with a retention of {retention:?}");
        let stored = bench.complete_for(&a, retention).await?;
        stored.must_be(&situation, &CompleteOutcome::Stored)?;
        until(clock::now(), bench.unit, 20).await;
        bench
            .is_free(&format!("a moment after {situation}"))
            .await?;
    }
    Ok(())
}

async fn of_a_record_with_the_longest_retention(bench: Bench) -> Checked {
    let a = Party::same();
    let week = Duration::from_hours(7 * 24);
    let stored = bench.complete_for(&a, week).await?;
    stored.must_be("a completion kept for a week", &CompleteOutcome::Stored)?;
    bench.stands("a record kept for a week", &a).await
}
