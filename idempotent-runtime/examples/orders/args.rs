//! The command line.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use idempotent_runtime::Settings;
use serde_json::{Map, Value};

pub(crate) const USAGE: &str = "\
Usage: orders [--listen ADDRESS:PORT] [--store memory|redis://HOST:PORT] [--rows FILE]
              [--lease 30s] [--wait 5s] [--retention 24h] [--store-timeout 100ms]
              [--on-store-failure open|closed]

  --listen ADDRESS:PORT  where to listen, such as 127.0.0.1:3000; port 0 is any free one.
                         Without it: 127.0.0.1:3000, and 50 duplicates of one request first.
  --store STORE          where records are kept: `memory`, the default, in this process, or the
                         URL of a Redis that several copies of this program share.
  --rows FILE            keep the orders in this file, which several copies may share. Without
                         it they are in memory.
  --lease and so on      the settings of these names.
  --help                 print this.";

/// The settings that have a flag.
const SETTINGS: [&str; 5] = [
    "lease",
    "wait",
    "retention",
    "store_timeout",
    "on_store_failure",
];

/// What the user asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) listen: SocketAddr,
    pub(crate) store: Store,
    pub(crate) rows: Option<PathBuf>,
    pub(crate) settings: Settings,
    /// Whether to show what duplicates do before listening to others.
    pub(crate) demo: bool,
}

/// Where records are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    #[cfg(feature = "redis")]
    Redis(String),
}

impl Args {
    /// Reads the arguments after the program's name; `None` where only help is asked for.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let (mut listen, mut store, mut rows) = (None, Store::Memory, None);
        let mut settings = Map::new();
        while let Some(flag) = args.next() {
            match &*flag {
                "--help" | "-h" => return Ok(None),
                "--listen" => listen = Some(address(&value(&flag, &mut args)?)?),
                "--store" => store = Store::named(&value(&flag, &mut args)?)?,
                "--rows" => rows = Some(value(&flag, &mut args)?.into()),
                _ => {
                    let name =
                        setting(&flag).ok_or_else(|| format!("unknown argument `{flag}`"))?;
                    settings.insert(name, value(&flag, &mut args)?.into());
                }
            }
        }
        Ok(Some(Self {
            listen: listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 3000).into()),
            store,
            rows,
            // As a service reads them from its configuration. `build` says what is wrong with one.
            settings: serde_json::from_value(Value::Object(settings))
                .map_err(|error| error.to_string())?,
            demo: listen.is_none(),
        }))
    }
}

impl Store {
    fn named(name: &str) -> Result<Self, String> {
        if name == "memory" {
            return Ok(Self::Memory);
        }
        if !name.starts_with("redis://") && !name.starts_with("rediss://") {
            return Err(format!(
                "unknown store `{name}`: there are `memory` and a URL such as `redis://127.0.0.1:6379`"
            ));
        }
        #[cfg(feature = "redis")]
        return Ok(Self::Redis(name.to_owned()));
        #[cfg(not(feature = "redis"))]
        Err(format!(
            "Redis is not built in: run `cargo run --release --features redis --example orders -- --store {name}`"
        ))
    }
}

/// The setting that a flag stands for.
fn setting(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?.replace('-', "_");
    SETTINGS.contains(&&*name).then_some(name)
}

fn value(flag: &str, args: &mut impl Iterator<Item = String>) -> Result<String, String> {
    args.next().ok_or_else(|| format!("`{flag}` needs a value"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no address with a port, such as 127.0.0.1:3000"))
}
