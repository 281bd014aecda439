//! Rule 4: a release frees its own claim, and only that.

use std::sync::Arc;

use super::bench::{Bench, Checked, Outcome as _, Party};
use crate::store::ReleaseOutcome;

super::check_list! { "release":
    ALL frees_its_own_claim,
    ALL of_nothing,
    ALL leaves_another_claim,
    ALL leaves_a_record,
}

async fn frees_its_own_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let released = bench.release(&a).await?;
    released.must_be("a release of its own claim", &ReleaseOutcome::Released)?;
    bench.is_free("after a release").await
}

async fn of_nothing(bench: Bench) -> Checked {
    let released = bench.release(&Party::same()).await?;
    let situation = "a release where nothing stands";
    released.must_be(situation, &ReleaseOutcome::NotHeld)?;
    bench.is_free("after a release of nothing").await
}

async fn leaves_another_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    for b in [Party::same(), Party::other()] {
        let released = bench.release(&b).await?;
        let situation = "a release where another's claim stands";
        released.must_be(situation, &ReleaseOutcome::NotHeld)?;
    }
    bench.is_held("after another's release", &a).await
}

async fn leaves_a_record(bench: Bench) -> Checked {
    let a = Party::same();
    bench.complete(&a).await?;
    let wanted = ReleaseOutcome::Completed(Arc::clone(&a.record));
    for party in [&a, &Party::same(), &Party::other()] {
        let found = bench.release(party).await?;
        found.must_be("a release where a record stands", &wanted)?;
    }
    bench
        .stands("after a release where a record stands", &a)
        .await
}
