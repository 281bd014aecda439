//! When a claim lapses: with its lease, measured by nobody else's, and never in one process.

use super::bench::{Bench, Checked, Outcome as _, Party, answer, until, within};
use crate::{
    clock::{self, Instant},
    store::{ClaimOutcome, CompleteOutcome, ReleaseOutcome, RenewOutcome},
};

super::check_list! { "lease":
    EMBEDDED never_lapses_in_one_process,
    LAPSING stands_until_its_end,
    LAPSING lapses_at_its_end,
    LAPSING is_the_holders_not_the_next_ones,
    LAPSING is_prolonged_by_a_renewal,
    LAPSING lapses_after_the_last_renewal,
    LEASED of_a_restored_claim_lapses,
    LEASED lapsed_can_still_be_completed,
    LAPSING lapsed_has_nothing_to_release,
    LEASED lapsed_and_taken_is_lost,
    LEASED lapsed_and_kept_is_nobody_elses,
    LEASED lapsed_and_kept_is_still_its_holders,
    LEASED lapsed_and_kept_is_gone_in_the_end,
}

/// Claims for one unit. When the claim was sent, and when it was answered.
async fn claimed(bench: &Bench, a: &Party) -> Result<(Instant, Instant), super::Failure> {
    let sent = clock::now();
    let found = bench.claim_for(a, bench.unit).await?;
    found.must_be("a claim on an empty key", &ClaimOutcome::Claimed)?;
    Ok((sent, clock::now()))
}

/// A claim whose lease is over.
async fn lapsed(bench: &Bench, a: &Party) -> Checked {
    let (_, answered) = claimed(bench, a).await?;
    until(answered, bench.unit, 120).await;
    Ok(())
}

async fn never_lapses_in_one_process(bench: Bench) -> Checked {
    let a = Party::same();
    lapsed(&bench, &a).await?;
    bench
        .is_held("after the lease of a claim that lives with its run", &a)
        .await
}

async fn stands_until_its_end(bench: Bench) -> Checked {
    let a = Party::same();
    let (sent, _) = claimed(&bench, &a).await?;
    until(sent, bench.unit, 50).await;
    let held = bench.is_held("at half of its lease, a claim", &a).await;
    within(bench.unit, sent)?;
    held
}

async fn lapses_at_its_end(bench: Bench) -> Checked {
    lapsed(&bench, &Party::same()).await?;
    bench.is_free("a claim after another's lease is over").await
}

async fn is_the_holders_not_the_next_ones(bench: Bench) -> Checked {
    for percent in [10, 1000] {
        let bench = bench.elsewhere();
        let (a, b) = (Party::same(), Party::same());
        let lease = bench.unit * percent / 100;
        let (sent, answered) = claimed(&bench, &a).await?;
        until(sent, bench.unit, 50).await;
        let found = bench.claim_for(&b, lease).await?;
        let again = bench.claim_for(&b, lease).await?;
        within(bench.unit, sent)?;
        let situation = format!("a claim for {percent} % of the holder's lease, at half of it");
        bench.must_be_held(&situation, &found, &a)?;
        bench.must_be_held(&situation, &again, &a)?;
        until(answered, bench.unit, 120).await;
        let found = bench.claim_for(&b, lease).await?;
        let situation = format!("a claim for {percent} % of the holder's lease, after its end");
        found.must_be(&situation, &ClaimOutcome::Claimed)?;
        bench.release(&b).await?;
    }
    Ok(())
}

async fn is_prolonged_by_a_renewal(bench: Bench) -> Checked {
    let a = Party::same();
    let (sent, _) = claimed(&bench, &a).await?;
    until(sent, bench.unit, 50).await;
    let renewing = clock::now();
    let renewed = bench.renew_for(&a, bench.unit).await?;
    within(bench.unit, sent)?;
    renewed.must_be("a renewal of its own claim", &RenewOutcome::Renewed)?;
    until(sent, bench.unit, 120).await;
    let held = bench
        .is_held("after its first lease, a claim that was renewed", &a)
        .await;
    within(bench.unit, renewing)?;
    held
}

async fn lapses_after_the_last_renewal(bench: Bench) -> Checked {
    let a = Party::same();
    let (sent, _) = claimed(&bench, &a).await?;
    bench.renew_for(&a, bench.unit).await?;
    within(bench.unit, sent)?;
    until(clock::now(), bench.unit, 120).await;
    bench
        .is_free("a claim after the last renewal's lease is over")
        .await
}

async fn of_a_restored_claim_lapses(bench: Bench) -> Checked {
    let a = Party::same();
    bench.renew_for(&a, bench.unit).await?;
    until(clock::now(), bench.unit, 120).await;
    bench
        .is_free("a claim after the lease of a restored one is over")
        .await
}

async fn lapsed_can_still_be_completed(bench: Bench) -> Checked {
    let a = Party::same();
    lapsed(&bench, &a).await?;
    let stored = bench.complete(&a).await?;
    let situation = "a completion after its lease, where nobody has claimed since";
    stored.must_be(situation, &CompleteOutcome::Stored)?;
    bench.stands("after a completion that came late", &a).await
}

async fn lapsed_has_nothing_to_release(bench: Bench) -> Checked {
    let a = Party::same();
    lapsed(&bench, &a).await?;
    let released = bench.release(&a).await?;
    released.must_be("a release after its lease", &ReleaseOutcome::NotHeld)
}

async fn lapsed_and_taken_is_lost(bench: Bench) -> Checked {
    let (a, b) = (Party::same(), Party::same());
    lapsed(&bench, &a).await?;
    bench.claim(&b).await?;
    let released = bench.release(&a).await?;
    let situation = "a release of a claim that another has taken over";
    released.must_be(situation, &ReleaseOutcome::NotHeld)?;
    let renewed = bench.renew(&a).await?;
    let situation = "a renewal of a claim that another has taken over";
    renewed.must_be(situation, &RenewOutcome::Lost)?;
    let stored = bench.complete(&a).await?;
    let situation = "a completion of a claim that another has taken over";
    stored.must_be(situation, &CompleteOutcome::Displaced)
}

/// A claim whose lease is over and which is kept for so many percent of a unit. When it was
/// answered.
async fn kept(bench: &Bench, a: &Party, percent: u32) -> Result<Instant, super::Failure> {
    let claim = a.claim(bench.unit).kept(bench.unit * percent / 100);
    let found = answer("claim", bench.store.claim(&bench.key, claim)).await?;
    found.must_be("a claim on an empty key", &ClaimOutcome::Claimed)?;
    let answered = clock::now();
    for party in [Party::same(), Party::other()] {
        let found = bench.claim(&party).await?;
        bench.must_be_held("in its lease, a claim that is kept", &found, a)?;
    }
    within(bench.unit, answered)?;
    until(answered, bench.unit, 120).await;
    Ok(answered)
}

const FOR_LONG: u32 = 100_000;

async fn lapsed_and_kept_is_nobody_elses(bench: Bench) -> Checked {
    let a = Party::same();
    kept(&bench, &a, FOR_LONG).await?;
    for b in [Party::same(), Party::other()] {
        let found = bench.claim(&b).await?;
        let situation = "a claim where another's is kept after its lease";
        let wanted = ClaimOutcome::Lapsed {
            fingerprint: a.fingerprint,
        };
        found.must_be(situation, &wanted)?;
        let renewed = bench.renew(&b).await?;
        let situation = "a renewal where another's claim is kept";
        renewed.must_be(situation, &RenewOutcome::Lost)?;
        let released = bench.release(&b).await?;
        let situation = "a release where another's claim is kept";
        released.must_be(situation, &ReleaseOutcome::NotHeld)?;
    }
    let b = Party::same();
    let stored = bench.complete(&b).await?;
    let situation = "a completion where another's claim is kept";
    stored.must_be(situation, &CompleteOutcome::Displaced)?;
    bench
        .stands("after a completion over a kept claim", &b)
        .await
}

async fn lapsed_and_kept_is_still_its_holders(bench: Bench) -> Checked {
    let a = Party::same();
    kept(&bench, &a, FOR_LONG).await?;
    let renewed = bench.renew(&a).await?;
    let situation = "a renewal of its own claim, kept after its lease";
    renewed.must_be(situation, &RenewOutcome::Renewed)?;
    bench.is_held("after a kept claim was renewed", &a).await?;

    let released = bench.elsewhere();
    kept(&released, &a, FOR_LONG).await?;
    let outcome = released.release(&a).await?;
    let situation = "a release of its own claim, kept after its lease";
    outcome.must_be(situation, &ReleaseOutcome::Released)?;
    released.is_free("after a kept claim was released").await?;

    let completed = bench.elsewhere();
    kept(&completed, &a, FOR_LONG).await?;
    let stored = completed.complete(&a).await?;
    let situation = "a completion of its own claim, kept after its lease";
    stored.must_be(situation, &CompleteOutcome::Stored)?;
    completed
        .stands("after a kept claim was completed", &a)
        .await
}

async fn lapsed_and_kept_is_gone_in_the_end(bench: Bench) -> Checked {
    let answered = kept(&bench, &Party::same(), 50).await?;
    until(answered, bench.unit, 180).await;
    bench
        .is_free("a claim after another's was kept as long as it asked")
        .await
}
