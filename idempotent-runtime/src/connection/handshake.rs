//! What is asked on a fresh connection before it is used, in one round trip.

use std::{fmt::Display, time::Duration};

use redis::{
    Cmd, InfoDict, Pipeline, RedisResult, Value,
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
    from_redis_value,
};

use super::{
    fault::Opening,
    link::{Link, Peer},
    open::within,
};

/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// The first version in which `SET` takes `NX` and `GET` together (redis.io/commands/set).
const LEAST_VERSION: u32 = 7;

/// Greets a server over a fresh connection: is it there, is it a master, what does it call the
/// connection. It closes those `before`; and once it is asked whether it can be used at all.
pub(super) async fn greet(
    server: &(impl Display + Sync),
    mut link: Link,
    before: &[Peer],
    check: bool,
) -> Result<(Link, Vec<Peer>), Opening> {
    let peers = within(ANSWER, async {
        match &mut link {
            Link::Cluster(cluster) => greet_cluster(server, cluster.clone(), before, check).await,
            Link::One(_) | Link::Given(_) => greet_one(server, &mut link, before, check).await,
        }
    });
    let peers = peers.await?;
    Ok((link, peers))
}

async fn greet_one(
    server: &(impl Display + Sync),
    link: &mut Link,
    before: &[Peer],
    check: bool,
) -> Result<Vec<Peer>, Opening> {
    // Behind the user's own connection may be another server each time.
    let ours = matches!(link, Link::One(_));
    let mut commands = Pipeline::new();
    commands.ignore_errors();
    commands.add_command(command(&["PING"]));
    if ours {
        commands.add_command(command(&["ROLE"]));
        commands.add_command(command(&["CLIENT", "INFO"]));
    }
    if check {
        commands.add_command(command(&["INFO", "server"]));
        commands.add_command(command(&["INFO", "memory"]));
    }
    for peer in before {
        commands.add_command(close(peer));
    }
    let replies: Vec<RedisResult<Value>> = commands.query_async(link).await?;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
    next()?;
    let mut peers = Vec::new();
    if ours {
        must_be_master(next())?;
        peers.extend(next().ok().and_then(|info| peer(info, None)));
    }
    if check {
        must_be_usable(server, next(), next())?;
    }
    Ok(peers)
}

async fn greet_cluster(
    server: &(impl Display + Sync),
    mut cluster: ClusterConnection,
    before: &[Peer],
    check: bool,
) -> Result<Vec<Peer>, Opening> {
    let anywhere = || RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
    let all = || RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
    for peer in before {
        if let Some((host, port)) = peer.node.clone() {
            let node = SingleNodeRoutingInfo::ByAddress { host, port };
            let closed = cluster.route_command(close(peer), RoutingInfo::SingleNode(node));
            if let Err(error) = closed.await {
                tracing::debug!("{server}: an old connection was not closed: {error}");
            }
        }
    }
    cluster
        .route_command(command(&["PING"]), anywhere())
        .await?;
    if check {
        let mut info = async |section| {
            let info = command(&["INFO", section]);
            cluster.route_command(info, anywhere()).await
        };
        let (version, memory) = (info("server").await, info("memory").await);
        must_be_usable(server, version, memory)?;
    }
    let infos = cluster
        .route_command(command(&["CLIENT", "INFO"]), all())
        .await;
    let Ok(Value::Map(infos)) = infos else {
        return Ok(Vec::new());
    };
    let peers = infos.into_iter().filter_map(|(node, info)| {
        let node: String = from_redis_value(node).ok()?;
        let (host, port) = node.rsplit_once(':')?;
        peer(info, Some((host.to_owned(), port.parse().ok()?)))
    });
    Ok(peers.collect())
}

fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(words);
    command
}

/// Closes a connection, with all that was sent on it and not yet read. By address as well as by id:
/// after a restart, or at another server, the id is somebody else's.
fn close(peer: &Peer) -> Cmd {
    command(&["CLIENT", "KILL", "ID", &peer.id, "ADDR", &peer.address])
}

/// What `CLIENT INFO` says of the connection. A user who may not ask goes without.
fn peer(info: Value, node: Option<(String, u16)>) -> Option<Peer> {
    let info: String = from_redis_value(info).ok()?;
    let field = |name: &str| {
        let mut fields = info.split_ascii_whitespace();
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    Some(Peer {
        id: field("id")?.to_owned(),
        address: field("addr")?.to_owned(),
        node,
    })
}

/// What `ROLE` says, where it may be asked.
pub(super) fn must_be_master(role: RedisResult<Value>) -> Result<(), Opening> {
    let role = match role {
        Ok(Value::Array(role)) => role.into_iter().next(),
        Ok(_) => None,
        Err(error) if is_refusal(&error) => None,
        Err(error) => return Err(error.into()),
    };
    match role.map(from_redis_value::<String>) {
        Some(Ok(role)) if role != "master" => Err(Opening::Unreachable(format!(
            "the server that answers is no master but a {role}"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// What `INFO` says, where it may be asked.
fn must_be_usable(
    server: &(impl Display + Sync),
    about: RedisResult<Value>,
    memory: RedisResult<Value>,
) -> Result<(), Opening> {
    let read = |info: RedisResult<Value>| match info {
        Ok(info) => Ok(from_redis_value::<InfoDict>(info).ok()),
        Err(error) if is_refusal(&error) => {
            tracing::debug!("{server}: version and memory policy are not checked: {error}");
            Ok(None)
        }
        Err(error) => Err(Opening::from(error)),
    };
    let version: Option<String> = read(about)?.and_then(|info| info.get("redis_version"));
    if let Some(version) = version {
        let major = version.split('.').next().map(str::parse);
        if let Some(Ok(major)) = major
            && u32::lt(&major, &LEAST_VERSION)
        {
            return Err(Opening::Unusable(format!(
                "it is version {version}, and {LEAST_VERSION}.0 is the first with `SET .. NX GET`: upgrade it"
            )));
        }
    }
    let policy: Option<String> = read(memory)?.and_then(|info| info.get("maxmemory_policy"));
    if let Some(policy) = policy
        && policy != "noeviction"
    {
        tracing::warn!(
            "{server} has `maxmemory-policy {policy}`: when its memory is full it forgets claims and records, and retries run a second time; set it to `noeviction`"
        );
    }
    Ok(())
}

/// The user may not ask this, or the server has no such command.
fn is_refusal(error: &redis::RedisError) -> bool {
    matches!(error.code(), Some("NOPERM" | "ERR"))
}
