//! Three masters that share the slots.

use super::server::{RedisServer, free_port, until};

/// A cluster of three masters without replicas, which ends with the value.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// A cluster whose nodes agree that it is whole.
    ///
    /// # Panics
    ///
    /// If Redis is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A cluster with more lines in each node's configuration file.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(config: &[&str]) -> Self {
        let nodes: Vec<_> = (0..3)
            .map(|_| {
                let bus = format!("cluster-port {}", free_port());
                let own = ["cluster-enabled yes", "cluster-node-timeout 1000", &bus];
                RedisServer::with(&[&own[..], config].concat())
            })
            .collect();
        let slots = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (node, (first, last)) in nodes.iter().zip(slots) {
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
        }
        for node in &nodes[1..] {
            let bus = node.cli(&["CONFIG", "GET", "cluster-port"]);
            let bus = bus.lines().last().expect("the port of the cluster's bus");
            let port = node.port().to_string();
            nodes[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        until("three nodes form a cluster", || {
            nodes.iter().all(|node| {
                let info = node.cli(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
        Self { nodes }
    }

    /// The addresses of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The nodes; each owns a third of the slots, in their order.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The nodes, to be killed and started again.
    pub fn nodes_mut(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// The node that owns a key's slot.
    ///
    /// # Panics
    ///
    /// If a node does not answer.
    #[must_use]
    pub fn owner(&self, key: &str) -> &RedisServer {
        let slot: u16 = self.nodes[0]
            .cli(&["CLUSTER", "KEYSLOT", key])
            .parse()
            .expect("the number of a slot");
        &self.nodes[usize::from(slot) * 3 / 16384]
    }

    /// What `redis-cli` prints for a command, asked of the node that owns this key.
    ///
    /// # Panics
    ///
    /// If a node does not answer.
    #[expect(
        clippy::must_use_candidate,
        reason = "many commands are sent for what they do"
    )]
    pub fn cli(&self, key: &str, args: &[&str]) -> String {
        self.owner(key).cli(args)
    }
}
