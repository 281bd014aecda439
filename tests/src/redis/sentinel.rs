//! A master, its replica, and three sentinels that watch over them.

use super::server::{RedisServer, until};

/// A master with one replica and three sentinels, all of which end with the value.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

/// What the sentinels call the master.
const MASTER: &str = "orders";

impl RedisSentinel {
    /// Servers that know each other, ready to fail over.
    ///
    /// # Panics
    ///
    /// If Redis is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// The same with more lines in the configuration files of master and replica.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(config: &[&str]) -> Self {
        let quick = ["repl-diskless-sync-delay 0"];
        let config = [&quick[..], config].concat();
        let master = RedisServer::with(&config);
        let follows = format!("replicaof 127.0.0.1 {}", master.port());
        let replica = RedisServer::with(&[&[&*follows][..], &config].concat());
        until("the replica follows", || {
            let info = replica.cli(&["INFO", "replication"]);
            info.contains("master_link_status:up")
        });
        let monitor = format!("sentinel monitor {MASTER} 127.0.0.1 {} 2", master.port());
        let down = format!("sentinel down-after-milliseconds {MASTER} 500");
        let failover = format!("sentinel failover-timeout {MASTER} 3000");
        let sentinels: Vec<_> = (0..3)
            .map(|_| RedisServer::launch(&[&monitor, &down, &failover], true))
            .collect();
        until("the sentinels know each other and the replica", || {
            sentinels.iter().all(|sentinel| {
                let known = sentinel.cli(&["SENTINEL", "MASTER", MASTER]);
                field(&known, "num-slaves") == Some("1")
                    && field(&known, "num-other-sentinels") == Some("2")
            })
        });
        Self {
            servers: vec![master, replica],
            sentinels,
        }
    }

    /// What the sentinels call the master.
    #[must_use]
    pub fn name(&self) -> &'static str {
        MASTER
    }

    /// The addresses of the sentinels.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisServer::url).collect()
    }

    /// The sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The first master and its replica, whoever is the master now.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The server that all sentinels take for the master.
    ///
    /// # Panics
    ///
    /// If they do not come to agree on one.
    #[must_use]
    pub fn master(&self) -> &RedisServer {
        let mut agreed = None;
        until("the sentinels agree on a master", || {
            let mut said = self
                .sentinels
                .iter()
                .map(|sentinel| sentinel.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]));
            agreed = said.next();
            said.all(|other| Some(other) == agreed)
        });
        let port = agreed.unwrap_or_default();
        let port = port.lines().last().expect("the master's port");
        let mut servers = self.servers.iter();
        servers
            .find(|server| server.port().to_string() == port)
            .expect("a server of this test")
    }

    /// Makes the replica the master, without a crash: the old master follows it from then on.
    ///
    /// # Panics
    ///
    /// If that does not come about.
    pub fn fail_over(&self) {
        let old = self.master().port();
        until("a failover begins", || {
            self.sentinels[0].cli(&["SENTINEL", "FAILOVER", MASTER]) == "OK"
        });
        self.wait_for_another_master(old);
        until("the old master follows", || {
            let mut servers = self.servers.iter();
            let old = servers.find(|server| server.port() == old);
            // It cuts its clients as it is demoted.
            let info = old.and_then(|old| old.try_cli(&["INFO", "replication"]).ok());
            info.is_some_and(|info| info.contains("role:slave"))
        });
    }

    /// Kills the master, and waits until the replica is the master. Returns which server was killed.
    ///
    /// # Panics
    ///
    /// If the sentinels choose no other.
    pub fn kill_master(&mut self) -> &mut RedisServer {
        let old = self.master().port();
        let mut servers = self.servers.iter();
        let at = servers.position(|server| server.port() == old);
        let at = at.expect("a server of this test");
        self.servers[at].kill();
        self.wait_for_another_master(old);
        &mut self.servers[at]
    }

    fn wait_for_another_master(&self, old: u16) {
        until("another master is chosen", || {
            let master = self.master();
            let promoted = || master.cli(&["INFO", "replication"]).contains("role:master");
            master.port() != old && promoted()
        });
    }
}

/// A field of a reply that `redis-cli` prints as lines of names and values.
fn field<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = reply.lines();
    lines.find(|&line| line == name)?;
    lines.next()
}
