//! Rule 1: a claim takes an empty key, and nothing else.

use super::bench::{Bench, Checked, LONG, Outcome as _, Party, broken};
use crate::store::{ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome};

super::check_list! { "claim":
    ALL takes_an_empty_key,
    FENCED with_its_own_token_has_acquired,
    ALL meets_an_attempt_of_the_same_request,
    ALL meets_another_request,
    FENCED tells_the_request_that_runs,
    FENCED refused_leaves_the_holder_its_claim,
    ALL finds_a_record,
    ALL takes_a_key_that_was_released,
    FENCED tells_how_long_the_lease_stands,
}

async fn takes_an_empty_key(bench: Bench) -> Checked {
    let found = bench.claim(&Party::same()).await?;
    found.must_be("a claim on an empty key", &ClaimOutcome::Claimed)
}

async fn with_its_own_token_has_acquired(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let again = bench.claim(&a).await?;
    again.must_be(
        "a claim repeated with its own token, as after a lost reply",
        &ClaimOutcome::Claimed,
    )
}

async fn meets(bench: &Bench, b: &Party, whose: &str) -> Checked {
    bench.claim(&Party::same()).await?;
    match bench.claim(b).await? {
        ClaimOutcome::InProgress { .. } => Ok(()),
        found @ (ClaimOutcome::Claimed
        | ClaimOutcome::Lapsed { .. }
        | ClaimOutcome::Completed(_)) => broken(format!(
            "a claim where {whose} has a claim: the store answered {}, the rule wants InProgress",
            found.words()
        )),
    }
}

async fn meets_an_attempt_of_the_same_request(bench: Bench) -> Checked {
    meets(&bench, &Party::same(), "another attempt").await
}

async fn meets_another_request(bench: Bench) -> Checked {
    meets(&bench, &Party::other(), "another request").await
}

async fn tells_the_request_that_runs(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let found = bench.claim(&Party::other()).await?;
    bench.must_be_held("a claim tells whose claim is in its way", &found, &a)
}

async fn refused_leaves_the_holder_its_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    bench.claim(&Party::other()).await?;
    bench.is_held("after a claim that was refused", &a).await?;
    let released = bench.release(&a).await?;
    released.must_be(
        "the holder's release after another's claim was refused",
        &ReleaseOutcome::Released,
    )
}

async fn finds_a_record(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let stored = bench.complete(&a).await?;
    stored.must_be("a completion of its own claim", &CompleteOutcome::Stored)?;
    bench.stands("a claim where a record stands", &a).await
}

async fn takes_a_key_that_was_released(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    bench.release(&a).await?;
    bench.is_free("a claim after a release").await
}

async fn tells_how_long_the_lease_stands(bench: Bench) -> Checked {
    bench.claim(&Party::same()).await?;
    let embedded = bench.store.level() == Level::Embedded;
    match bench.claim(&Party::same()).await? {
        ClaimOutcome::InProgress {
            lease_left: None, ..
        } if embedded => Ok(()),
        ClaimOutcome::InProgress {
            lease_left: Some(left),
            ..
        } if !embedded && !left.is_zero() && left <= LONG => Ok(()),
        found @ (ClaimOutcome::InProgress { .. }
        | ClaimOutcome::Lapsed { .. }
        | ClaimOutcome::Claimed
        | ClaimOutcome::Completed(_)) => {
            let wanted = if embedded {
                "None, since a claim has no lease here".to_owned()
            } else {
                format!("some time up to {LONG:?}")
            };
            broken(format!(
                "a claim that meets one with a lease of {LONG:?}: the store answered {found:?}, the rule wants a `lease_left` of {wanted}"
            ))
        }
    }
}
