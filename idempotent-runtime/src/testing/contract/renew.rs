//! Rule 3: a renewal prolongs its own claim, or puts it back where nothing stands.

use std::sync::Arc;

use super::bench::{Bench, Checked, Outcome as _, Party};
use crate::store::{ReleaseOutcome, RenewOutcome};

super::check_list! { "renew":
    ALL keeps_its_own_claim,
    FENCED restores_a_claim_that_is_gone,
    ALL leaves_another_claim,
    ALL leaves_a_record,
}

async fn keeps_its_own_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let renewed = bench.renew(&a).await?;
    renewed.must_be("a renewal of its own claim", &RenewOutcome::Renewed)?;
    bench.is_held("after a renewal", &a).await
}

async fn restores_a_claim_that_is_gone(bench: Bench) -> Checked {
    let a = Party::same();
    let renewed = bench.renew(&a).await?;
    let situation = "a renewal where nothing stands, as after the store lost its data";
    renewed.must_be(situation, &RenewOutcome::Restored)?;
    bench.is_held("after a claim was restored", &a).await?;
    let released = bench.release(&a).await?;
    released.must_be("a release of a restored claim", &ReleaseOutcome::Released)
}

async fn leaves_another_claim(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    for b in [Party::same(), Party::other()] {
        let renewed = bench.renew(&b).await?;
        renewed.must_be(
            "a renewal where another's claim stands",
            &RenewOutcome::Lost,
        )?;
    }
    bench.is_held("after another's renewal", &a).await?;
    let released = bench.release(&a).await?;
    released.must_be(
        "the holder's release after another's renewal",
        &ReleaseOutcome::Released,
    )
}

async fn leaves_a_record(bench: Bench) -> Checked {
    let a = Party::same();
    bench.complete(&a).await?;
    let wanted = RenewOutcome::Completed(Arc::clone(&a.record));
    for party in [&a, &Party::same(), &Party::other()] {
        let found = bench.renew(party).await?;
        found.must_be("a renewal where a record stands", &wanted)?;
    }
    bench
        .stands("after a renewal where a record stands", &a)
        .await
}
