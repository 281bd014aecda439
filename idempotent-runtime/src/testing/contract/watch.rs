//! A watch ends when the claim has gone. A store without one is polled instead.

use tokio::time;

use super::bench::{BOUND, Bench, Checked, Party, broken};
use crate::store::BoxFuture;

super::check_list! { "watch":
    ALL ends_when_the_claim_is_completed,
    ALL ends_when_the_claim_is_released,
    ALL ends_when_the_claim_is_displaced,
    ALL ends_where_nothing_stands,
    ALL sees_a_change_before_its_first_poll,
    ALL dropped_leaves_the_others,
}

async fn ends(watch: Option<BoxFuture<()>>, situation: &str) -> Checked {
    let Some(watch) = watch else { return Ok(()) };
    if time::timeout(BOUND, watch).await.is_ok() {
        return Ok(());
    }
    broken(format!(
        "a watch {situation} did not end within {BOUND:?}: a waiter would learn too late; without a signal `watch` returns None"
    ))
}

/// Several watches that have begun to wait.
async fn waiting(bench: &Bench) -> Vec<Option<BoxFuture<()>>> {
    let mut watches = Vec::new();
    for _ in 0..10 {
        let mut watch = bench.store.watch(&bench.key);
        if let Some(running) = &mut watch {
            let ended = time::timeout(bench.unit / 50, running.as_mut()).await;
            if ended.is_ok() {
                // It is only a hint, and may end at any time; but not be polled again then.
                watch = None;
            }
        }
        watches.push(watch);
    }
    watches
}

async fn ends_when_the_claim_is_completed(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let watches = waiting(&bench).await;
    bench.complete(&a).await?;
    for watch in watches {
        ends(watch, "of a claim that was completed").await?;
    }
    Ok(())
}

async fn ends_when_the_claim_is_released(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let watches = waiting(&bench).await;
    bench.release(&a).await?;
    for watch in watches {
        ends(watch, "of a claim that was released").await?;
    }
    Ok(())
}

async fn ends_when_the_claim_is_displaced(bench: Bench) -> Checked {
    bench.claim(&Party::same()).await?;
    let watches = waiting(&bench).await;
    bench.complete(&Party::same()).await?;
    for watch in watches {
        ends(watch, "of a claim that another's record has displaced").await?;
    }
    Ok(())
}

async fn ends_where_nothing_stands(bench: Bench) -> Checked {
    ends(bench.store.watch(&bench.key), "of an empty key").await?;
    bench.complete(&Party::same()).await?;
    ends(bench.store.watch(&bench.key), "of a record").await
}

/// The engine makes a watch, looks at the claim once more, and only then waits.
async fn sees_a_change_before_its_first_poll(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let watch = bench.store.watch(&bench.key);
    bench.claim(&Party::same()).await?;
    bench.release(&a).await?;
    ends(watch, "of a claim that was released before the first poll").await
}

async fn dropped_leaves_the_others(bench: Bench) -> Checked {
    let a = Party::same();
    bench.claim(&a).await?;
    let mut watches = waiting(&bench).await;
    watches.truncate(watches.len() / 2);
    bench
        .is_held("after watches were dropped, a claim", &a)
        .await?;
    bench.release(&a).await?;
    for watch in watches {
        ends(watch, "beside others that were dropped").await?;
    }
    Ok(())
}
