//! The command line.

use std::net::{Ipv4Addr, SocketAddr};

pub(crate) const USAGE: &str = "\
Usage: orders [--listen ADDRESS:PORT] [--store memory]

  --listen ADDRESS:PORT  where to listen, such as 127.0.0.1:3000; port 0 is any free one.
                         Without it: 127.0.0.1:3000, and 50 duplicates of one request first.
  --store memory         where records are kept; `memory` is the default.
  --help                 print this.";

/// What the user asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) listen: SocketAddr,
    pub(crate) store: Store,
    /// Whether to show what duplicates do before listening to others.
    pub(crate) demo: bool,
}

/// Where records are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
}

impl Args {
    /// Reads the arguments after the program's name; `None` where only help is asked for.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut listen = None;
        let mut store = Store::Memory;
        while let Some(flag) = args.next() {
            match &*flag {
                "--help" | "-h" => return Ok(None),
                "--listen" => listen = Some(address(&value(&flag, &mut args)?)?),
                "--store" => store = Store::named(&value(&flag, &mut args)?)?,
                _ => return Err(format!("unknown argument `{flag}`")),
            }
        }
        Ok(Some(Self {
            listen: listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 3000).into()),
            store,
            demo: listen.is_none(),
        }))
    }
}

impl Store {
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "memory" => Ok(Self::Memory),
            _ => Err(format!("unknown store `{name}`: there is `memory`")),
        }
    }
}

fn value(flag: &str, args: &mut impl Iterator<Item = String>) -> Result<String, String> {
    args.next().ok_or_else(|| format!("`{flag}` needs a value"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no address with a port, such as 127.0.0.1:3000"))
}
