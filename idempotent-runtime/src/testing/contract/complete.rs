//! Rule 2: the first success wins.

use std::sync::Arc;

use super::bench::{Bench, Checked, Outcome as _, Party, broken};
use crate::store::{CompleteOutcome, Level, ReleaseOutcome};

super::check_list! { "complete":
    ALL over_its_own_claim,
    ALL over_nothing,
    ALL over_another_attempts_claim,
    ALL over_another_requests_claim,
    FENCED tells_that_it_displaced_a_claim,
    ALL keeps_another_record,
    ALL of_the_displaced_finds_the_record,
    FENCED repeated_is_done,
}

async fn over_its_own_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let stored = bench.complete(&a).await?;
    stored.must_be("a completion of its own claim", &CompleteOutcome::Stored)?;
    bench
        .stands("after a completion of its own claim", &a)
        .await
}

async fn over_nothing(bench: Bench) -> Checked {
    let a = Party::same();
    let stored = bench.complete(&a).await?;
    let situation = "a completion where nothing stands, as after a lapsed lease";
    stored.must_be(situation, &CompleteOutcome::Stored)?;
    bench.stands("after a completion over nothing", &a).await
}

async fn over(bench: &Bench, holder: &Party, whose: &str) -> Checked {
    let a = Party::same();
    bench.claim(holder).await?;
    let situation = format!("a completion over the claim of {whose}");
    match bench.complete(&a).await? {
        CompleteOutcome::Stored | CompleteOutcome::Displaced => {}
        found @ CompleteOutcome::Completed(_) => {
            return broken(format!(
                "{situation}: the store answered {}, the rule wants the record stored, for it is the first success",
                found.words()
            ));
        }
    }
    bench.stands(&situation, &a).await
}

async fn over_another_attempts_claim(bench: Bench) -> Checked {
    over(&bench, &Party::same(), "another attempt").await
}

async fn over_another_requests_claim(bench: Bench) -> Checked {
    over(&bench, &Party::other(), "another request").await
}

async fn tells_that_it_displaced_a_claim(bench: Bench) -> Checked {
    for holder in [Party::same(), Party::other()] {
        let bench = bench.elsewhere();
        bench.claim(&holder).await?;
        let stored = bench.complete(&Party::same()).await?;
        let situation = "a completion over another's claim, which is a double run";
        stored.must_be(situation, &CompleteOutcome::Displaced)?;
    }
    Ok(())
}

async fn keeps_another_record(bench: Bench) -> Checked {
    let a = Party::same();
    bench.complete(&a).await?;
    let wanted = CompleteOutcome::Completed(Arc::clone(&a.record));
    for b in [Party::same(), Party::other()] {
        let found = bench.complete(&b).await?;
        found.must_be("a completion where another's record stands", &wanted)?;
    }
    bench
        .stands("after a completion that came second", &a)
        .await
}

async fn of_the_displaced_finds_the_record(bench: Bench) -> Checked {
    let (a, b) = (Party::same(), Party::same());
    bench.claim(&b).await?;
    bench.complete(&a).await?;
    if bench.store.level() != Level::Locked {
        let released = bench.release(&b).await?;
        let wanted = ReleaseOutcome::Completed(Arc::clone(&a.record));
        released.must_be("a release of a claim that a record has displaced", &wanted)?;
    }
    let found = bench.complete(&b).await?;
    let wanted = CompleteOutcome::Completed(Arc::clone(&a.record));
    found.must_be(
        "a completion of a claim that a record has displaced",
        &wanted,
    )?;
    bench.stands("after the displaced has reported", &a).await
}

async fn repeated_is_done(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    bench.complete(&a).await?;
    let again = bench.complete(&a).await?;
    let situation = "a completion repeated with its own token, as after a lost reply";
    again.must_be(situation, &CompleteOutcome::Stored)?;
    bench.stands("after a repeated completion", &a).await
}
