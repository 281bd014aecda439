//! The store that fails on demand fails as it is told to, and no more.

use std::time::Duration;

use idempotent_runtime::{
    MemoryStore,
    store::{
        ClaimOutcome, CompleteOutcome, Level, ReleaseOutcome, RenewOutcome, Step, Store,
        StoreErrorKind, Token,
    },
    testing::{Fault, Faulty, LeasedStore, Operation},
};
use idempotent_tests::store::{HOUR, claim, key, record, stands};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Sends one command; whether it was answered without an error.
#[expect(clippy::panic, reason = "a helper of tests")]
async fn send<S: Store>(store: &Faulty<S>, operation: Operation, token: Token) -> bool {
    let key = key(1);
    match operation {
        Operation::Claim => store.claim(&key, claim(token)).answer().await.is_ok(),
        Operation::Renew => store.renew(&key, claim(token)).answer().await.is_ok(),
        Operation::Complete => {
            let step = store.complete(&key, token, record(1), HOUR);
            step.answer().await.is_ok()
        }
        Operation::Release => store.release(&key, token).answer().await.is_ok(),
        Operation::Probe => store.probe().answer().await.is_ok(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_next_command_of_its_kind_fails() {
    for operation in Operation::ALL {
        let store = Faulty::new(MemoryStore::new());
        let token = Token::unique();
        store.pass(operation);
        store.next(operation, Fault::Fail);
        for other in Operation::ALL {
            assert!(send(&store, other, token).await, "{other:?}");
        }
        assert!(!send(&store, operation, token).await, "{operation:?}");
        assert!(send(&store, operation, token).await, "{operation:?}");
        for counted in Operation::ALL {
            let expected = if counted == operation { 3 } else { 1 };
            assert_eq!(store.seen(counted), expected, "{counted:?}");
        }
    }
}

#[tokio::test]
async fn a_failed_command_is_not_carried_out_and_one_whose_reply_is_lost_is() {
    let token = Token::unique();
    for (fault, carried_out) in [(Fault::Fail, false), (Fault::LoseReply, true)] {
        for awaiting in [false, true] {
            let store = Faulty::new(MemoryStore::new());
            let store = if awaiting { store.awaiting() } else { store };
            store.next(Operation::Claim, fault);
            let step = store.claim(&key(1), claim(token));
            assert_eq!(matches!(step, Step::Later(_)), awaiting);
            let error = step.answer().await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(store.store().in_progress() == 1, carried_out, "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_command_is_dropped_with_its_caller_and_a_late_one_is_not() {
    let store = Faulty::new(MemoryStore::new());
    let (start, token) = (Instant::now(), Token::unique());
    store.next(Operation::Claim, Fault::Delay(SECOND));
    let found = store.claim(&key(1), claim(token)).answer().await.unwrap();
    assert_eq!((found, start.elapsed()), (ClaimOutcome::Claimed, SECOND));

    store.next(Operation::Release, Fault::Delay(SECOND));
    let release = store.release(&key(1), token).answer();
    assert!(timeout(SECOND / 2, release).await.is_err());
    sleep(SECOND * 2).await;
    assert_eq!(store.store().in_progress(), 1);

    store.next(Operation::Release, Fault::Late(SECOND));
    assert!(store.release(&key(1), token).answer().await.is_err());
    assert_eq!(store.store().in_progress(), 1);
    sleep(SECOND * 2).await;
    assert_eq!(store.store().in_progress(), 0);

    store.next(Operation::Claim, Fault::Hang);
    let claim = store.claim(&key(1), claim(token)).answer();
    assert!(timeout(HOUR, claim).await.is_err());
    assert_eq!(store.store().in_progress(), 0);
}

#[tokio::test]
async fn a_clone_keeps_control_until_it_heals() {
    let store = Faulty::new(LeasedStore::new());
    let given_away = store.clone();
    assert_eq!(given_away.level(), Level::Leased);
    store.down(Fault::Fail);
    store.next(Operation::Claim, Fault::LoseReply);
    for operation in Operation::ALL {
        assert!(
            !send(&given_away, operation, Token::unique()).await,
            "{operation:?}"
        );
        assert_eq!(store.seen(operation), 1);
    }
    store.heal();
    assert!(send(&given_away, Operation::Release, Token::unique()).await);
    // only the claim whose reply was lost has been carried out
    let found = given_away
        .claim(&key(1), claim(Token::unique()))
        .answer()
        .await
        .unwrap();
    assert!(
        matches!(found, ClaimOutcome::InProgress { .. }),
        "{found:?}"
    );
}

#[tokio::test]
async fn watching_can_be_switched_off() {
    let store = Faulty::new(MemoryStore::new());
    assert!(store.watch(&key(1)).is_some());
    let store = store.unwatched();
    assert!(store.watch(&key(1)).is_none());
}

#[tokio::test(start_paused = true)]
async fn clones_of_a_leased_store_are_replicas_and_lose_everything_together() {
    let (one, two) = {
        let store = LeasedStore::new();
        (store.clone(), store)
    };
    let (a, b) = (Token::unique(), Token::unique());
    assert_eq!(
        one.claim(&key(1), claim(a)).answer().await.unwrap(),
        ClaimOutcome::Claimed
    );
    let ClaimOutcome::InProgress { lease_left, .. } =
        two.claim(&key(1), claim(b)).answer().await.unwrap()
    else {
        panic!("not in progress");
    };
    assert_eq!(lease_left, Some(SECOND * 30));
    one.clear();
    assert_eq!(
        two.claim(&key(1), claim(b)).answer().await.unwrap(),
        ClaimOutcome::Claimed
    );
    assert_eq!(
        one.renew(&key(1), claim(a)).answer().await.unwrap(),
        RenewOutcome::Lost
    );
    assert_eq!(
        one.release(&key(1), a).answer().await.unwrap(),
        ReleaseOutcome::NotHeld
    );
    let displaced = one
        .complete(&key(1), a, record(1), HOUR)
        .answer()
        .await
        .unwrap();
    assert_eq!(displaced, CompleteOutcome::Displaced);
    assert!(stands(&two, &key(1)).is_some());
}
