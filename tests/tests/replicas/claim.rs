//! K01: claim, run, store and release are one guarded step.

use idempotent_tests::{fleet::Fleet, http::Runs};
use tokio::time::{Instant, sleep, sleep_until};

use super::{millis, works};

#[tokio::test(flavor = "multi_thread")]
async fn b001_forty_at_once_on_two_replicas_are_one_run() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let members = fleet.two(|| works(&runs)).await;
    let replies: Vec<_> = (0..40)
        .map(|n| members[n % 2].spawn("/", "k1", "300"))
        .collect();
    let mut replayed = 0;
    for reply in replies {
        let reply = reply.await.unwrap();
        assert_eq!(
            (reply.status.as_u16(), reply.text().as_str()),
            (201, "run 1")
        );
        replayed += usize::from(reply.is_replay());
    }
    assert_eq!((runs.count(), replayed), (1, 39));
}

#[tokio::test(flavor = "multi_thread")]
async fn b002_a_duplicate_of_a_run_in_progress_waits_for_it() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    let began = Instant::now();
    let first = one.spawn("/", "k", "1000");
    sleep(millis(100)).await;
    let second = two.send("/", "k", "1000").await;
    let waited = began.elapsed();
    assert!((millis(1000)..millis(1600)).contains(&waited), "{waited:?}");
    assert_eq!(second.outcome(), (201, true));
    assert_eq!(first.await.unwrap().body, second.body);
    assert_eq!(runs.count(), 1);
}

/// Duplicates that come in the moments around the end of the run: 200 keys, 20 at a time.
#[tokio::test(flavor = "multi_thread")]
async fn b003_around_the_end_of_a_run_nobody_runs_again() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let members = fleet.two(|| works(&runs)).await;
    for round in 0..10 {
        let began = Instant::now();
        let mut replies = Vec::new();
        for n in 0..20 {
            let key = format!("k{round}.{n}");
            replies.push(members[n % 2].spawn("/", &key, "400"));
        }
        for tick in 0..30u64 {
            sleep_until(began + millis(350 + tick * 10 / 3)).await;
            for n in 0..20 {
                let key = format!("k{round}.{n}");
                replies.push(members[usize::from(tick % 2 == 0)].spawn("/", &key, "400"));
            }
        }
        for reply in replies {
            assert_eq!(reply.await.unwrap().status, 201);
        }
    }
    assert_eq!(runs.count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn b004_what_one_replica_stores_another_finds_and_so_after_a_restart() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let [one, two] = fleet.two(|| works(&runs)).await;
    assert_eq!(one.send("/", "k", "0").await.outcome(), (201, false));
    assert_eq!(two.send("/", "k", "0").await.outcome(), (201, true));
    drop(one);
    let one = fleet.member(works(&runs)).await;
    assert_eq!(one.send("/", "k", "0").await.outcome(), (201, true));
    assert_eq!(runs.count(), 1);
}
