//! One open connection, to one server or to a cluster, or one that the user has opened.

use redis::{
    Cmd, Pipeline, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
};

/// An open connection, or several to the nodes of one cluster. Clones share it.
#[derive(Clone)]
pub(crate) enum Link {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
    Given(Box<dyn Given>),
}

/// What a server calls a connection of ours.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Unique since the server's start.
    pub(super) id: String,
    /// Ours, as the server sees it. With it the connection is still the same after a restart.
    pub(super) address: String,
    /// The node of a cluster, as host and port.
    pub(super) node: Option<(String, u16)>,
}

/// A connection of the user's that can be cloned.
pub(crate) trait Given: ConnectionLike + Send + Sync {
    fn boxed(&self) -> Box<dyn Given>;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Given for C {
    fn boxed(&self) -> Box<dyn Given> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Given> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(link) => link.req_packed_command(cmd),
            Self::Cluster(link) => link.req_packed_command(cmd),
            Self::Given(link) => (**link).req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(link) => link.req_packed_commands(pipeline, offset, count),
            Self::Cluster(link) => link.req_packed_commands(pipeline, offset, count),
            Self::Given(link) => (**link).req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(link) => link.get_db(),
            Self::Cluster(link) => link.get_db(),
            Self::Given(link) => (**link).get_db(),
        }
    }
}
