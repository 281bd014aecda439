//! How one connection is opened, and how long that and its commands may take.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, ProtocolVersion};
use tokio::time;

use super::{fault::Opening, link::Link};

/// How long it takes to open a connection before the server counts as unreachable.
pub(super) const OPENING: Duration = Duration::from_secs(1);
/// How long a cluster may take to answer: longer than the longest `store_timeout`, which is what
/// decides when a command is late.
pub(super) const RESPONSE: Duration = Duration::from_secs(61);
/// How many commands wait for the connection's task, before the next one waits to be one of them.
const QUEUE: usize = 1024;

/// Whoever sends a command decides how long to wait for it: a timer of the connection's would be a
/// second one for each.
pub(super) fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(OPENING))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE)
}

pub(super) async fn within<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, Opening>>,
) -> Result<T, Opening> {
    let answer = time::timeout(limit, future).await;
    answer.unwrap_or_else(|_| Err(Opening::too_late(limit)))
}

pub(super) async fn open_one(
    client: &Client,
    protocol: ProtocolVersion,
    config: &AsyncConnectionConfig,
) -> Result<Link, Opening> {
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone().set_protocol(protocol);
    let client = Client::open(info.set_redis_settings(settings))?;
    let link = client
        .get_multiplexed_async_connection_with_config(config)
        .await?;
    Ok(Link::One(link))
}
