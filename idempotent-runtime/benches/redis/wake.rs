//! How soon a duplicate on one replica is answered, once the handler on another has ended.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    percentile,
    service::{Replica, fresh_key, is_replay, request},
    workers,
};

const TRIALS: u64 = 500;
/// How often is looked whether the handler has begun.
const TICK: Duration = Duration::from_micros(200);

/// The replicas have a Tokio runtime each, as processes do; in one process they share its clock.
pub(crate) fn report(redis: &str) {
    let (here, there) = (workers(1), workers(1));
    let first = here.block_on(here.spawn(start(redis.to_owned())));
    let second = there.block_on(there.spawn(start(redis.to_owned())));
    let (first, second) = (first.expect("it starts"), second.expect("it starts"));
    let mut millis = Vec::new();
    for trial in 0..=TRIALS {
        let key = fresh_key();
        // Not always at the same moment of a pause between two looks.
        let path = format!("/slow/{}", 10 + trial % 11);
        let (one, other) = (first.clone(), second.clone());
        let original = request(&path, key);
        let original = here.spawn(async move { one.send(original).await });
        while first.seen.begun.load(Ordering::Relaxed) <= trial {
            std::thread::sleep(TICK);
        }
        let duplicate = there.spawn(async move {
            let response = other.send(request(&path, key)).await;
            (response, Instant::now())
        });
        let (response, answered) = here.block_on(duplicate).expect("the driver does not panic");
        assert!(is_replay(&response));
        assert!(!is_replay(
            &here.block_on(original).expect("it does not panic")
        ));
        let ended = first.seen.ended.lock().take().expect("the handler has run");
        // In the first one the replicas begin to listen for changes.
        if trial > 0 {
            millis.push(answered.duration_since(ended).as_secs_f64() * 1e3);
        }
    }
    println!("MS wake_p50 {:.2}", percentile(&mut millis, 50));
    println!("MS wake_p99 {:.2}", percentile(&mut millis, 99));
}

async fn start(redis: String) -> Replica {
    Replica::start(&redis).await
}
