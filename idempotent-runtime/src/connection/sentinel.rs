//! Who the master is, asked of all sentinels at once.
//!
//! The first sentinel that names a server which agrees to be the master wins, so one that hangs or
//! has been cut off delays nothing.

use std::fmt;

use redis::{
    Client, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisResult,
    Value,
};
use tokio::task::JoinSet;

use super::{
    fault::Opening,
    handshake,
    link::Link,
    open::{config, open_one},
};

/// Servers that sentinels watch over.
pub(crate) struct Watched {
    sentinels: Vec<ConnectionInfo>,
    master: String,
}

impl Watched {
    pub(super) fn new(sentinels: Vec<ConnectionInfo>, master: &str) -> Self {
        Self {
            sentinels,
            master: master.to_owned(),
        }
    }

    /// The master by the word of a sentinel, and its own.
    pub(super) async fn find(&self) -> Result<Client, Opening> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(find(sentinel.clone(), self.master.clone()));
        }
        let mut why = Opening::Unreachable("no sentinel answers".to_owned());
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(client)) => return Ok(client),
                Ok(Err(opening)) => why = opening,
                Err(_) => {}
            }
        }
        Err(why)
    }
}

async fn find(sentinel: ConnectionInfo, master: String) -> Result<Client, Opening> {
    let mut link = open(&sentinel).await?;
    let mut ask = redis::cmd("SENTINEL");
    ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&master);
    let found: RedisResult<Option<(String, u16)>> = ask.query_async(&mut link).await;
    let Some((host, port)) = found? else {
        return Err(Opening::Unusable(format!(
            "the sentinel at {} knows no master `{master}`",
            sentinel.addr()
        )));
    };
    // Reached as the sentinel is.
    let address = if let ConnectionAddr::TcpTls {
        insecure,
        tls_params,
        ..
    } = sentinel.addr().clone()
    {
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        }
    } else {
        ConnectionAddr::Tcp(host, port)
    };
    let client = Client::open(sentinel.set_addr(address))?;
    let mut link = open_one(&client, ProtocolVersion::RESP2, &config()).await?;
    let role: RedisResult<Value> = redis::cmd("ROLE").query_async(&mut link).await;
    handshake::must_be_master(role)?;
    Ok(client)
}

/// A connection to a sentinel, with the credentials in its URL or, where it asks for none, without.
async fn open(sentinel: &ConnectionInfo) -> Result<Link, Opening> {
    let of_master = sentinel.redis_settings();
    // A sentinel has no databases.
    let own = of_master.clone().set_db(0);
    let client = Client::open(sentinel.clone().set_redis_settings(own))?;
    match open_one(&client, ProtocolVersion::RESP2, &config()).await {
        Err(Opening::Unusable(_)) if of_master.password().is_some() => {
            let without = sentinel
                .clone()
                .set_redis_settings(RedisConnectionInfo::default());
            open_one(&Client::open(without)?, ProtocolVersion::RESP2, &config()).await
        }
        opened => opened,
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentinels: Vec<_> = self
            .sentinels
            .iter()
            .map(|info| info.addr().to_string())
            .collect();
        write!(
            f,
            "the Redis master `{}` by the sentinels at {}",
            self.master,
            sentinels.join(", ")
        )
    }
}
