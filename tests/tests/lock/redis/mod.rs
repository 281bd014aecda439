//! The lock in Redis, on servers of its own.

mod fault;
mod hold;

use std::time::Duration;

use idempotent_runtime::lock::{DistributedLock, Guard, LockError, RedisLock};
use idempotent_tests::{proxy::Proxy, redis::RedisServer};
use tokio::time::{Instant, sleep};

const TTL: Duration = Duration::from_secs(30);
const STORED: &str = "tests:lock:the key";

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn connect(url: &str) -> RedisLock {
    RedisLock::connect(url, "tests").await.expect("a lock")
}

/// A lock that reaches the server through a proxy.
async fn behind(proxy: &Proxy) -> RedisLock {
    connect(&format!("redis://{}", proxy.address())).await
}

async fn attempt(
    lock: &impl DistributedLock,
    ttl: Duration,
    wait: Duration,
) -> Result<Option<Guard>, LockError> {
    lock.try_acquire("the key", ttl, wait).await
}

async fn taken(lock: &impl DistributedLock, ttl: Duration) -> Option<Guard> {
    let taken = attempt(lock, ttl, Duration::ZERO).await;
    taken.expect("a server that is well")
}

/// What the server has at the key, in milliseconds: -2 is nothing, -1 is no end.
fn left(server: &RedisServer) -> i64 {
    server.cli(&["PTTL", STORED]).parse().expect("a number")
}

async fn until_free(server: &RedisServer, within: Duration) {
    let began = Instant::now();
    while left(server) != -2 {
        assert!(began.elapsed() < within, "{} ms are left", left(server));
        sleep(millis(5)).await;
    }
}

/// How often the server has carried out a command.
fn calls(server: &RedisServer, command: &str) -> usize {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = format!("cmdstat_{command}:calls=");
    let mut lines = stats.lines();
    let count = lines.find_map(|stat| stat.strip_prefix(&line)?.split(',').next()?.parse().ok());
    count.unwrap_or_default()
}
