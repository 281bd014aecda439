//! A command may be dropped at any point: a client hangs up, `store_timeout` passes. It may then
//! have been carried out or not, but it leaves no lock behind.

use std::{future::poll_fn, sync::Arc, task::Poll};

use tokio::{task, time};

use super::bench::{BOUND, Bench, Checked, Outcome as _, Party, broken};
use crate::{
    clock,
    store::{BoxFuture, ClaimOutcome, CompleteOutcome, Level, Step},
};

super::check_list! { "cancel":
    ALL of_a_claim,
    ALL of_a_renewal,
    ALL of_a_completion,
    ALL of_a_release,
}

/// At how many polls commands are dropped: never polled, once, and so on.
const POLLS: usize = 6;

/// Begins a command, and drops it after so many polls.
async fn dropped<T>(step: Step<T>, polls: usize) {
    let Step::Later(mut command) = step else {
        return;
    };
    for _ in 0..polls {
        if ready(&mut command).await {
            return;
        }
        task::yield_now().await;
    }
}

async fn ready<T>(command: &mut BoxFuture<T>) -> bool {
    poll_fn(|cx| Poll::Ready(command.as_mut().poll(cx).is_ready())).await
}

/// Another request gets the key once the first has released it. A dropped command may land
/// later, so this is asked until it must have.
async fn gets_free(bench: &Bench, a: &Party, what: &str) -> Checked {
    let start = clock::now();
    let b = Party::other();
    loop {
        bench.release(a).await?;
        let found = bench.claim(&b).await?;
        if found == ClaimOutcome::Claimed {
            bench.release(&b).await?;
            return Ok(());
        }
        if clock::now() - start > BOUND {
            return broken(format!(
                "a claim {BOUND:?} after {what} was dropped and its claim released: the store answered {}, the rule wants Claimed",
                found.words()
            ));
        }
        time::sleep(bench.unit / 25).await;
    }
}

async fn of_a_claim(bench: Bench) -> Checked {
    for polls in 0..POLLS {
        let (bench, a) = (bench.elsewhere(), Party::same());
        dropped(bench.store.claim(&bench.key, a.claim(BOUND)), polls).await;
        gets_free(&bench, &a, "a claim").await?;
    }
    Ok(())
}

async fn of_a_release(bench: Bench) -> Checked {
    for polls in 0..POLLS {
        let (bench, a) = (bench.elsewhere(), Party::same());
        bench.claim(&a).await?;
        dropped(bench.store.release(&bench.key, a.token), polls).await;
        gets_free(&bench, &a, "a release").await?;
    }
    Ok(())
}

async fn of_a_renewal(bench: Bench) -> Checked {
    for polls in 0..POLLS {
        let (bench, a) = (bench.elsewhere(), Party::same());
        bench.claim(&a).await?;
        dropped(bench.store.renew(&bench.key, a.claim(BOUND)), polls).await;
        let stored = bench.complete(&a).await?;
        let situation = "a completion after a renewal was dropped";
        stored.must_be(situation, &CompleteOutcome::Stored)?;
    }
    Ok(())
}

async fn of_a_completion(bench: Bench) -> Checked {
    for polls in 0..POLLS {
        let (bench, a) = (bench.elsewhere(), Party::same());
        bench.claim(&a).await?;
        let record = Arc::clone(&a.record);
        let step = bench
            .store
            .complete(&bench.key, a.token, record, BOUND * 10);
        dropped(step, polls).await;
        let stored = bench.complete(&a).await?;
        // A cache does not know who stored a record.
        let own = CompleteOutcome::Completed(Arc::clone(&a.record));
        if bench.store.level() != Level::Locked || stored != own {
            let situation = "a completion repeated after it was dropped";
            stored.must_be(situation, &CompleteOutcome::Stored)?;
        }
        bench
            .stands("after a completion was dropped and repeated", &a)
            .await?;
    }
    Ok(())
}
