//! The contract suite finds what it is there to find: each check fails for a store that breaks
//! its rule and no other, and passes for the stores that keep it.

mod flaw;
mod flawed;
mod found;
mod mangle;

use std::{collections::BTreeSet, future};

use idempotent_runtime::{store::Level, testing};

use self::{
    flawed::Flawed,
    found::{ALLOWED_TO_LOCKS, FOUND},
};

const LEVELS: [Level; 3] = [Level::Embedded, Level::Leased, Level::Locked];

#[tokio::test(start_paused = true)]
async fn each_check_finds_its_flaw() {
    let mut wrong = Vec::new();
    for &(level, flaw, check, words) in FOUND {
        let violations = testing::violations(async || Flawed::new(level, Some(flaw))).await;
        match violations.iter().find(|violation| violation.check == check) {
            Some(violation) if violation.message.contains(words) => {}
            Some(violation) => wrong.push(format!("{flaw:?}: not \"{words}\" but {violation}")),
            None => wrong.push(format!(
                "{flaw:?}: not found by {check}, but {violations:?}"
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_check_is_without_a_flaw() {
    let proven: BTreeSet<_> = FOUND.iter().map(|&(_, _, check, _)| check).collect();
    let checks: BTreeSet<_> = LEVELS.into_iter().flat_map(testing::checks).collect();
    assert!(checks.len() > 60, "{}", checks.len());
    assert_eq!(checks, proven);
}

#[tokio::test(start_paused = true)]
async fn a_store_without_flaws_passes_at_every_level() {
    for level in LEVELS {
        testing::contract(async || Flawed::new(level, None)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_and_a_lock_need_not_fence() {
    for &flaw in ALLOWED_TO_LOCKS {
        let violations = testing::violations(async || Flawed::new(Level::Locked, Some(flaw))).await;
        assert_eq!(violations, [], "{flaw:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_assertion_names_every_broken_rule_and_its_caller() {
    let flawed = || {
        let flaw = flaw::Flaw::ReleaseIgnoresTheToken;
        future::ready(Flawed::new(Level::Embedded, Some(flaw)))
    };
    let checked = tokio::task::LocalSet::new();
    let checked = checked.run_until(async move {
        tokio::task::spawn_local(async move { testing::contract(flawed).await }).await
    });
    let panic = checked.await.unwrap_err().into_panic();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains(file!()), "{message}");
    assert!(
        message.contains("release::leaves_another_claim: "),
        "{message}"
    );
    assert!(!message.contains("cancel::"), "{message}");
}
