//! Limits of waiting say who waits for a run, not who waits for an answer that is there.

use idempotent_runtime::{Settings, testing::Operation};
use idempotent_tests::replica::{LEASE, World};
use tokio::task::JoinHandle;

use super::millis;

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
async fn replayed(settings: Settings) {
    let world = World::default();
    let one = world.replica_with(settings.lease(LEASE));
    assert_eq!(one.send("/", "x").await.outcome(), (201, false));
    let replies: Vec<JoinHandle<_>> = (0..5).map(|_| one.spawn("/", "x")).collect();
    for reply in replies {
        assert_eq!(reply.await.unwrap().outcome(), (201, true));
    }
    assert!(one.link.seen(Operation::Claim) > 1);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_nobody_gets_what_is_recorded() {
    replayed(Settings::default().wait(millis(0))).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_waiting_room_does_not_keep_from_what_is_recorded() {
    replayed(Settings::default().max_waiters_per_key(1)).await;
}
