//! Where the server is, and how a connection to it is opened.

use std::{fmt, time::Duration};

use redis::{
    Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    aio::AsyncPushSender,
    cluster::{ClusterClient, ClusterClientBuilder},
};

use super::{
    fault::Opening,
    link::{Given, Link},
    open::{OPENING, RESPONSE, config, open_one, within},
    sentinel::Watched,
};
use crate::error::{Error, ErrorKind};

/// How long it takes to open connections to all nodes of a cluster, of which some may be unreachable.
const OPENING_CLUSTER: Duration = Duration::from_secs(3);
/// How often a cluster's node may send a command on to another one: its slot has moved, and moves
/// on.
const REDIRECTIONS: u32 = 2;

/// Where a connection leads.
pub(crate) enum Server {
    /// One server.
    One(Box<Client>),
    /// The master among servers that sentinels watch over.
    Watched(Watched),
    /// A cluster.
    Cluster {
        client: Box<ClusterClient>,
        nodes: Vec<Client>,
    },
    /// Wherever the user's own connection leads.
    Given(Box<dyn Given>),
}

impl Server {
    /// One server at this address.
    pub(crate) fn one(url: &str) -> Result<Self, Error> {
        Ok(Self::One(Box::new(client(parse(url)?)?)))
    }

    /// The master of this name, asked of sentinels at these addresses.
    pub(crate) fn watched<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
        master: &str,
    ) -> Result<Self, Error> {
        let sentinels = parse_all(urls)?;
        for sentinel in &sentinels {
            client(sentinel.clone())?;
        }
        Ok(Self::Watched(Watched::new(sentinels, master)))
    }

    /// The cluster of which these are some nodes.
    pub(crate) fn cluster<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self, Error> {
        let infos = parse_all(urls)?;
        let nodes: Result<Vec<_>, _> = infos.iter().cloned().map(client).collect();
        let client = ClusterClientBuilder::new(infos)
            .use_protocol(ProtocolVersion::RESP2)
            .connection_timeout(OPENING)
            .response_timeout(RESPONSE)
            .overall_response_timeout(Some(RESPONSE))
            .retries(REDIRECTIONS)
            .min_retry_wait(10)
            .max_retry_wait(50)
            .build()
            .map_err(|error| refused("the Redis cluster", &error))?;
        Ok(Self::Cluster {
            client: Box::new(client),
            nodes: nodes?,
        })
    }

    /// A fresh connection, which speaks RESP2.
    pub(super) async fn open(&self) -> Result<Link, Opening> {
        match self {
            Self::One(client) => open_one(client, ProtocolVersion::RESP2, &config()).await,
            Self::Watched(watched) => {
                let master = within(OPENING, watched.find()).await?;
                open_one(&master, ProtocolVersion::RESP2, &config()).await
            }
            Self::Cluster { client, nodes } => {
                within(OPENING_CLUSTER, async {
                    match client.get_async_connection().await {
                        Ok(link) => Ok(Link::Cluster(link)),
                        Err(error) => Err(why(nodes).await.unwrap_or_else(|| error.into())),
                    }
                })
                .await
            }
            Self::Given(given) => Ok(Link::Given(given.clone())),
        }
    }

    /// A fresh connection that is sent what the server has to say unasked (RESP3); `None` where
    /// there is no one server to say it.
    pub(crate) async fn open_for_pushes(
        &self,
        pushes: impl AsyncPushSender,
    ) -> Option<Result<Link, Opening>> {
        let master;
        let client = match self {
            Self::One(client) => client,
            Self::Watched(watched) => match within(OPENING, watched.find()).await {
                Ok(found) => {
                    master = found;
                    &master
                }
                Err(opening) => return Some(Err(opening)),
            },
            Self::Cluster { .. } | Self::Given(_) => return None,
        };
        let config = config().set_push_sender(pushes);
        Some(open_one(client, ProtocolVersion::RESP3, &config).await)
    }

    /// Whether there is one server that can say something unasked.
    pub(crate) fn has_pushes(&self) -> bool {
        match self {
            Self::One(_) | Self::Watched(_) => true,
            Self::Cluster { .. } | Self::Given(_) => false,
        }
    }
}

/// Why no node of a cluster can be used, which its client does not say: the first that refuses.
async fn why(nodes: &[Client]) -> Option<Opening> {
    for node in nodes {
        let opened = open_one(node, ProtocolVersion::RESP2, &config()).await;
        if let Err(refusal @ Opening::Unusable(_)) = opened {
            return Some(refusal);
        }
    }
    None
}

fn parse(url: &str) -> Result<ConnectionInfo, Error> {
    // The URL may hold a password, so it is not repeated.
    url.into_connection_info()
        .map_err(|error| refused("the URL of Redis", &error))
}

fn parse_all<U: AsRef<str>>(
    urls: impl IntoIterator<Item = U>,
) -> Result<Vec<ConnectionInfo>, Error> {
    let parsed: Result<Vec<_>, _> = urls.into_iter().map(|url| parse(url.as_ref())).collect();
    match parsed {
        Ok(parsed) if parsed.is_empty() => Err(Error::new(
            ErrorKind::Configuration,
            "no URL of Redis was given: name at least one",
        )),
        parsed => parsed,
    }
}

fn client(info: ConnectionInfo) -> Result<Client, Error> {
    let address = info.addr().to_string();
    if !info.addr().is_supported() {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "{address} cannot be connected to: turn on the feature `redis-rustls` for a `rediss://` URL"
            ),
        ));
    }
    choose_cryptography();
    Client::open(info).map_err(|error| refused(&address, &error))
}

/// rustls takes the one of the process, which the application may have chosen already.
fn choose_cryptography() {
    #[cfg(feature = "redis-rustls")]
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

fn refused(what: &str, error: &redis::RedisError) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!("{what} cannot be connected to: {error}"),
    )
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(client) => write!(f, "Redis at {}", client.get_connection_info().addr()),
            Self::Watched(watched) => watched.fmt(f),
            Self::Cluster { nodes, .. } => {
                let nodes = nodes.iter().map(|node| node.get_connection_info().addr());
                let nodes: Vec<_> = nodes.map(ToString::to_string).collect();
                write!(f, "the Redis cluster at {}", nodes.join(", "))
            }
            Self::Given(_) => f.write_str("Redis by the given connection"),
        }
    }
}
