//! One request at a time, beside one `PING` at a time.

use std::time::Instant;

use super::{
    median,
    service::{Replica, fresh_key, is_replay, request},
};

/// Requests of each kind for one size.
const REQUESTS: usize = 3_000;
/// The larger a response, the fewer.
const LARGE_REQUESTS: usize = 500;
const WARM_UP: usize = 100;

pub(crate) async fn report(redis: &str) {
    let replica = Replica::start(redis).await;
    for (suffix, path, requests) in [
        ("", "/orders", REQUESTS),
        ("_4k", "/exports/4096", REQUESTS),
        ("_256k", "/exports/262144", LARGE_REQUESTS),
    ] {
        let (replica, redis) = (replica.clone(), redis.to_owned());
        // The driver is a task, as a connection is.
        let driver =
            tokio::task::spawn(async move { drive(&replica, &redis, path, requests).await });
        let (first, replay) = driver.await.expect("the driver does not panic");
        println!("RATIO first_vs_ping{suffix} {first:.2}");
        println!("RATIO replay_vs_ping{suffix} {replay:.2}");
    }
}

/// The median latencies of first requests and of replays, over that of a `PING`.
async fn drive(replica: &Replica, redis: &str, path: &str, requests: usize) -> (f64, f64) {
    let mut connection = redis::Client::open(redis)
        .expect("a valid URL")
        .get_multiplexed_async_connection()
        .await
        .expect("the server answers");
    let (mut pings, mut firsts, mut replays) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..requests + WARM_UP {
        let start = Instant::now();
        redis::cmd("PING")
            .exec_async(&mut connection)
            .await
            .expect("the server answers");
        let ping = start.elapsed();
        let key = fresh_key();
        let mut times = [ping; 2];
        for (time, again) in times.iter_mut().zip([false, true]) {
            let request = request(path, key);
            let start = Instant::now();
            let response = replica.send(request).await;
            *time = start.elapsed();
            assert_eq!(is_replay(&response), again);
        }
        if round >= WARM_UP {
            pings.push(ping.as_secs_f64());
            firsts.push(times[0].as_secs_f64());
            replays.push(times[1].as_secs_f64());
        }
    }
    let ping = median(&mut pings);
    (median(&mut firsts) / ping, median(&mut replays) / ping)
}
