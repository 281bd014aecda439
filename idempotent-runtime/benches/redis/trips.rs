//! Round trips, counted by the server.

use redis::{InfoDict, aio::MultiplexedConnection};

use super::service::{Replica, fresh_key, is_replay, request};

const REQUESTS: u64 = 200;
const BURSTS: usize = 50;
const DUPLICATES: usize = 8;

pub(crate) async fn report(redis: &str) {
    let mut server = redis::Client::open(redis)
        .expect("a valid URL")
        .get_multiplexed_async_connection()
        .await
        .expect("the server answers");
    let one = Replica::start(redis).await;
    let other = Replica::start(redis).await;
    // The first completion brings its script along.
    one.send(request("/orders", fresh_key())).await;

    let from = fresh_key() << 32;
    for (name, replays) in [("first", false), ("replay", true)] {
        let before = reads(&mut server).await;
        for key in from..from + REQUESTS {
            let response = one.send(request("/orders", key)).await;
            assert_eq!(is_replay(&response), replays);
        }
        let trips = reads(&mut server).await - before - 1;
        println!("RTT {name} {:.2}", trips as f64 / REQUESTS as f64);
    }

    let mut most = 0;
    for burst in 0..=BURSTS {
        let runs = one.runs() + other.runs();
        let before = reads(&mut server).await;
        let key = fresh_key();
        let duplicates: Vec<_> = (0..DUPLICATES)
            .map(|number| {
                let replica = if number % 2 == 0 { &one } else { &other }.clone();
                tokio::task::spawn(async move { replica.send(request("/slow/20", key)).await })
            })
            .collect();
        let mut replays = 0;
        for duplicate in duplicates {
            let response = duplicate.await.expect("the driver does not panic");
            replays += usize::from(is_replay(&response));
        }
        let trips = reads(&mut server).await - before - 1;
        assert_eq!(one.runs() + other.runs() - runs, 1);
        assert_eq!(replays, DUPLICATES - 1);
        // In the first one the replicas begin to listen for changes.
        if burst > 0 {
            most = most.max(trips);
        }
    }
    println!("RTT burst8 {most}");
}

/// How often the server has read from its clients.
async fn reads(server: &mut MultiplexedConnection) -> u64 {
    let stats: InfoDict = redis::cmd("INFO")
        .arg("stats")
        .query_async(server)
        .await
        .expect("the server answers");
    stats
        .get("total_reads_processed")
        .expect("Redis 6 or later")
}
