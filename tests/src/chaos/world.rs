//! What runs: one Redis, and copies of the example that reach it through a proxy each.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use reqwest::Client;
use serde_json::Value;

use super::{
    history::{History, Row},
    time,
};
use crate::{example::Shop, proxy::Proxy, redis::RedisServer};

/// What copies do when the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They run without the guarantee.
    Open,
    /// They refuse.
    Closed,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Closed => "closed",
        })
    }
}

/// A copy of the example, which can die and come back, and its way to Redis.
#[derive(Debug)]
pub struct Copy {
    /// Between the copy and Redis.
    pub proxy: Proxy,
    args: Vec<String>,
    log: PathBuf,
    shop: Mutex<Option<Shop>>,
}

impl Copy {
    /// Starts one that writes its rows to `rows` in this directory, and its log beside.
    ///
    /// # Panics
    ///
    /// Where it does not start.
    #[must_use]
    pub fn start(redis: &RedisServer, dir: &Path, name: &str, args: &[&str]) -> Self {
        let server: SocketAddr = redis.address().parse().expect("an address");
        let proxy = Proxy::to(server);
        let mut all = vec!["--store".to_owned(), format!("redis://{}", proxy.address())];
        let rows = dir.join("rows");
        all.extend(["--rows".to_owned(), rows.display().to_string()]);
        all.extend(args.iter().map(|&arg| arg.to_owned()));
        let copy = Self {
            proxy,
            args: all,
            log: dir.join(format!("{name}.log")),
            shop: Mutex::new(None),
        };
        copy.restart();
        copy
    }

    /// Starts its process anew, on another port.
    ///
    /// # Panics
    ///
    /// Where it does not start.
    pub fn restart(&self) {
        let args: Vec<_> = self.args.iter().map(String::as_str).collect();
        *self.shop.lock() = Some(Shop::logging(&args, &self.log));
    }

    /// Kills its process, as a crash does.
    pub fn kill(&self) {
        *self.shop.lock() = None;
    }

    /// Where it listens; `None` while it is dead.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        self.shop.lock().as_ref().map(|shop| shop.url().to_owned())
    }

    /// Stops its process without ending it.
    ///
    /// # Panics
    ///
    /// Where it is dead.
    pub fn freeze(&self) {
        self.shop.lock().as_ref().expect("it lives").signal("STOP");
    }

    /// Lets its process go on.
    ///
    /// # Panics
    ///
    /// Where it is dead.
    pub fn thaw(&self) {
        self.shop.lock().as_ref().expect("it lives").signal("CONT");
    }
}

/// The orders of all copies, asked of this one.
///
/// # Panics
///
/// Where it does not tell.
pub async fn rows(http: &Client, url: &str) -> Vec<Row> {
    let response = http.get(format!("{url}/orders")).send().await;
    let text = response.expect("an answer").text().await.expect("a body");
    serde_json::from_str(&text).expect("a list of rows")
}

/// How many keys of a Redis will never expire.
///
/// # Panics
///
/// Where it does not answer.
#[must_use]
pub fn everlasting(redis: &RedisServer) -> usize {
    let script = "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) == -1 then n = n + 1 end end return n";
    let count = redis.cli(&["EVAL", script, "0"]);
    count.parse().expect("a number of keys")
}

/// Everything of a round.
#[derive(Debug)]
pub(super) struct World {
    pub(super) redis: Mutex<RedisServer>,
    pub(super) copies: Vec<Copy>,
    pub(super) mode: Mode,
    pub(super) history: History,
    pub(super) http: Client,
    /// Begins every key of the round.
    pub(super) name: String,
}

impl World {
    /// Three copies with these arguments, and no more than half a second for duplicates to wait.
    pub(super) fn start(name: &str, mode: Mode, args: &[&str], dir: &Path) -> Self {
        let redis = RedisServer::start();
        let mode_arg = mode.to_string();
        let own = ["--wait", "500ms", "--on-store-failure", &mode_arg];
        let args = [args, &own].concat();
        let http = Client::builder().no_proxy().build().expect("a client");
        let world = Self {
            copies: (0..3)
                .map(|copy| Copy::start(&redis, dir, &format!("copy-{copy}"), &args))
                .collect(),
            redis: Mutex::new(redis),
            mode,
            history: History::default(),
            http,
            name: name.to_owned(),
        };
        for copy in 0..3 {
            world.born(copy);
        }
        world
    }

    /// Notes that a copy has started.
    pub(super) fn born(&self, copy: usize) {
        let url = self.copies[copy].url().expect("it lives");
        let address = url.trim_start_matches("http://");
        self.history.born(copy, address, time::now());
    }

    /// Waits until every copy has reported all that it has run.
    pub(super) async fn settle(&self) {
        for copy in &self.copies {
            let url = copy.url().expect("it lives");
            let start = time::now();
            loop {
                let response = self.http.get(format!("{url}/health")).send().await;
                let text = response.expect("an answer").text().await.expect("a body");
                let health: Value = serde_json::from_str(&text).expect("JSON");
                if health["pending_reports"] == 0 && health["in_flight"] == 0 {
                    break;
                }
                assert!(
                    time::now() < start + 30_000,
                    "{url} does not settle: {text}"
                );
                time::pause(50).await;
            }
        }
    }

    /// How many keys in Redis will never expire.
    pub(super) fn everlasting(&self) -> usize {
        everlasting(&self.redis.lock())
    }

    /// The sum of a metric over its labels that begin so.
    pub(super) async fn metric(&self, url: &str, name: &str) -> u64 {
        let response = self.http.get(format!("{url}/metrics")).send().await;
        let text = response.expect("an answer").text().await.expect("a body");
        let lines = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let whole = rest.starts_with([' ', '{', ',', '}']);
            whole.then(|| rest.rsplit(' ').next())?
        });
        lines
            .map(|value| value.parse::<u64>().expect("a number"))
            .sum()
    }
}
