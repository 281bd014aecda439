//! What requests pay while Redis is out of reach, and how long it takes until they are guarded again.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{
    percentile,
    proxy::Proxy,
    server::Server,
    service::{Replica, fresh_key, is_replay, request},
};

const OUTAGES: usize = 3;
/// Long enough for the pauses between two probes to be at their longest.
const OUTAGE: Duration = Duration::from_secs(2);
/// Clients that send a request each millisecond.
const CLIENTS: usize = 4;
/// How long a replica may take at most to come back, before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn report() {
    let mut server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let replica = Replica::start(&server.url()).await;
    let behind = Replica::start(&proxy.url()).await;
    let (mut dead, mut hung) = (Vec::new(), 0.0_f64);
    let mut recoveries = [0.0_f64; 3];
    for _ in 0..OUTAGES {
        server.kill();
        replica.send(request("/orders", fresh_key())).await;
        dead.extend(traffic(&replica, OUTAGE).await);
        server.restart();
        recoveries[0] = recoveries[0].max(recovered(&replica).await);
        // It was down for this one too.
        recovered(&behind).await;

        server.freeze();
        let times = traffic(&replica, OUTAGE).await;
        hung = times.into_iter().fold(hung, f64::max);
        server.thaw();
        recoveries[1] = recoveries[1].max(recovered(&replica).await);
        recovered(&behind).await;

        proxy.darken();
        traffic(&behind, OUTAGE).await;
        proxy.brighten();
        recoveries[2] = recoveries[2].max(recovered(&behind).await);
    }
    println!("MS outage_dead_p99 {:.3}", percentile(&mut dead, 99));
    println!("MS outage_hung_max {hung:.1}");
    for (name, millis) in ["dead", "hung", "blackhole"].iter().zip(recoveries) {
        println!("MS recovery_{name} {millis:.0}");
    }
}

/// Sends requests with new keys for so long; the milliseconds that each took.
async fn traffic(replica: &Replica, lasts: Duration) -> Vec<f64> {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let replica = replica.clone();
            tokio::task::spawn(async move {
                let (mut times, began) = (Vec::new(), Instant::now());
                while began.elapsed() < lasts {
                    let request = request("/orders", fresh_key());
                    let start = Instant::now();
                    replica.send(request).await;
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                    sleep(Duration::from_millis(1)).await;
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.expect("the driver does not panic"));
    }
    assert!(!replica.runtime.health().await.is_guarded(), "no outage");
    times
}

/// How many milliseconds pass until the replica says that requests are guarded, and they are.
async fn recovered(replica: &Replica) -> f64 {
    let began = Instant::now();
    while !replica.runtime.health().await.is_guarded() {
        assert!(began.elapsed() < PATIENCE, "not guarded again");
        sleep(Duration::from_millis(1)).await;
    }
    let millis = began.elapsed().as_secs_f64() * 1e3;
    let key = fresh_key();
    for again in [false, true] {
        let response = replica.send(request("/orders", key)).await;
        assert_eq!(is_replay(&response), again);
    }
    // What ran meanwhile is reported now.
    while replica.runtime.health().await.pending_reports > 0 {
        assert!(began.elapsed() < PATIENCE, "reports are left");
        sleep(Duration::from_millis(1)).await;
    }
    millis
}
