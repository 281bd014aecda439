//! What the embedded store tells of itself.

use std::{collections::HashMap, time::Duration};

use idempotent_runtime::MemoryStore;
use idempotent_tests::store::{HOUR, finish, key};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{advance, sleep};

/// Counts and values since the last look.
fn look(snapshotter: &Snapshotter) -> impl Fn(&str) -> Option<f64> {
    let metrics: HashMap<_, _> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter_map(|(key, _, _, value)| {
            let value = match value {
                DebugValue::Counter(count) => f64::from(u32::try_from(count).unwrap()),
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(_) => return None,
            };
            Some((key.key().name().to_owned(), value))
        })
        .collect();
    move |name| metrics.get(name).copied()
}

#[tokio::test(start_paused = true)]
async fn stored_bytes_follow_and_are_zero_when_all_has_expired() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let store = MemoryStore::new();
    for n in 0..100 {
        finish(&store, &key(n), 200, HOUR);
        advance(Duration::from_millis(50)).await;
    }
    let bytes = look(&snapshotter)("idempotency.stored_bytes").unwrap();
    let exact = f64::from(u32::try_from(store.stored_bytes()).unwrap());
    assert!(bytes > exact / 2.0 && bytes <= exact, "{bytes} of {exact}");
    // exact once traffic has stopped for a moment
    sleep(Duration::from_secs(11)).await;
    assert_eq!(look(&snapshotter)("idempotency.stored_bytes"), Some(exact));
    sleep(HOUR).await;
    assert_eq!(look(&snapshotter)("idempotency.stored_bytes"), Some(0.0));
    assert_eq!(look(&snapshotter)("idempotency.evicted"), None);
}

#[tokio::test(start_paused = true)]
async fn eviction_is_counted_and_tells_how_long_records_really_live() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let store = MemoryStore::new().max_bytes(1024 * 1024);
    for n in 0..4000 {
        finish(&store, &key(n), 400, HOUR);
        advance(Duration::from_millis(100)).await;
    }
    let value = look(&snapshotter);
    let evicted = value("idempotency.evicted").unwrap();
    let left = u32::try_from(store.len()).unwrap();
    assert_eq!(evicted, f64::from(4000 - left));
    let age = value("idempotency.effective_retention").unwrap();
    let lives = f64::from(left) / 10.0;
    assert!(
        (lives - 10.0..lives + 10.0).contains(&age),
        "{age} s, {lives} s expected"
    );
}
