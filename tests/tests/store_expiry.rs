//! Expiry in the embedded store: checked on reading, and removed while nobody asks.

use std::time::Duration;

use idempotent_runtime::{
    MemoryStore,
    store::{ClaimOutcome, Store, Token},
};
use idempotent_tests::store::{HOUR, claim, finish, key, now, stands};
use tokio::{
    runtime::{Builder, Handle},
    time::{advance, sleep},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn b071_nothing_is_left_of_200_000_keys_after_three_idle_seconds() {
    let store = MemoryStore::new();
    for n in 0..200_000 {
        finish(&store, &key(n), 20, SECOND);
    }
    assert_eq!(store.len(), 200_000);
    assert!(store.stored_bytes() > 200_000 * 200);
    sleep(SECOND * 3).await;
    assert_eq!(
        (store.len(), store.in_progress(), store.stored_bytes()),
        (0, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_record_is_absent_before_it_is_removed() {
    let store = MemoryStore::new();
    finish(&store, &key(1), 20, SECOND / 2);
    advance(SECOND / 4).await;
    assert!(stands(&store, &key(1)).is_some());
    advance(SECOND / 4).await;
    assert_eq!(store.len(), 1, "nobody has removed it");
    assert_eq!(
        now(store.claim(&key(1), claim(Token::unique()))),
        ClaimOutcome::Claimed
    );
    assert_eq!((store.len(), store.in_progress()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn records_go_in_the_order_of_their_expiry_whatever_came_first() {
    let store = MemoryStore::new();
    for n in 0..1000 {
        finish(
            &store,
            &key(n),
            20,
            SECOND * 100 * u32::try_from(10 - n % 10).unwrap(),
        );
    }
    // a record is removed at most ten seconds after its expiry
    sleep(SECOND * 11).await;
    for round in 0..10 {
        assert_eq!(store.len(), 1000 - 100 * round, "{round}");
        sleep(SECOND * 100).await;
    }
    assert_eq!(store.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn completions_alone_remove_what_has_expired() {
    let store = MemoryStore::new();
    for n in 0..5_000 {
        finish(&store, &key(n), 20, SECOND / 2);
    }
    // less than the first pause of the task that sweeps
    advance(SECOND / 2).await;
    for n in 5_000..15_000 {
        finish(&store, &key(n), 20, HOUR);
    }
    assert!(store.len() < 10_100, "{}", store.len());
}

#[tokio::test(start_paused = true)]
async fn the_task_lives_as_long_as_there_is_something_to_sweep() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let store = MemoryStore::new();
    now(store.claim(&key(0), claim(Token::unique())));
    assert_eq!(tasks(), 0);
    for turn in 0..3 {
        finish(&store, &key(1), 20, SECOND * 30);
        finish(&store, &key(2), 20, SECOND * 5);
        assert_eq!(tasks(), 1, "{turn}");
        sleep(SECOND * 20).await;
        assert_eq!((store.len(), tasks()), (2, 1), "{turn}");
        sleep(SECOND * 20).await;
        assert_eq!((store.len(), tasks()), (1, 0), "{turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_does_not_keep_the_store() {
    let store = MemoryStore::new();
    finish(&store, &key(1), 20, HOUR);
    drop(store);
    sleep(SECOND * 20).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[test]
fn another_runtime_sweeps_after_the_first_was_shut_down() {
    let runtime = || {
        Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let store = MemoryStore::new();
    runtime().block_on(async { finish(&store, &key(1), 20, SECOND) });
    runtime().block_on(async {
        finish(&store, &key(2), 20, SECOND);
        sleep(SECOND * 5).await;
    });
    assert_eq!(store.len(), 0);
}

#[test]
fn without_a_runtime_records_stand_all_the_same() {
    let store = MemoryStore::new();
    finish(&store, &key(1), 20, HOUR);
    finish(&store, &key(2), 20, Duration::ZERO);
    assert!(stands(&store, &key(1)).is_some());
    assert!(stands(&store, &key(2)).is_none());
}

/// The task cannot wait there, and says so once.
#[test]
fn a_runtime_without_timers_gets_one_task_and_no_more() {
    let store = MemoryStore::new();
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let tasks = || Handle::current().metrics().num_alive_tasks();
        finish(&store, &key(1), 20, HOUR);
        assert_eq!(tasks(), 1);
        tokio::task::yield_now().await;
        assert_eq!(tasks(), 0);
        finish(&store, &key(2), 20, HOUR);
        assert_eq!(tasks(), 0);
    });
    assert!(stands(&store, &key(2)).is_some());
}
