//! The command line.

use std::str::FromStr;

pub(crate) const USAGE: &str = "\
Usage: storm [--url URL]... [--keys N] [--duplicates N] [--clients N] [--work-ms N]

  --url URL       a running copy of the example `orders`; say it once for each.
                  Without it: http://127.0.0.1:3000.
  --keys N        how many different orders; 200 by default.
  --duplicates N  how often each is sent; 10 by default.
  --clients N     how many requests are under way at a time; 64 by default.
  --work-ms N     how long the shop works on an order; 20 by default, at most 60000.
  --help          print this.";

/// What the user asks for.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) urls: Vec<String>,
    pub(crate) keys: u64,
    pub(crate) duplicates: u64,
    pub(crate) clients: usize,
    pub(crate) work_ms: u64,
}

impl Args {
    /// Reads the arguments after the program's name; `None` where only help is asked for.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut parsed = Self {
            urls: Vec::new(),
            keys: 200,
            duplicates: 10,
            clients: 64,
            work_ms: 20,
        };
        while let Some(flag) = args.next() {
            if flag == "--help" || flag == "-h" {
                return Ok(None);
            }
            let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"));
            match &*flag {
                "--url" => parsed.urls.push(url(&value?)?),
                "--keys" => parsed.keys = number(&flag, &value?, 1_000_000)?,
                "--duplicates" => parsed.duplicates = number(&flag, &value?, 1000)?,
                "--clients" => parsed.clients = number(&flag, &value?, 10_000)?,
                "--work-ms" => parsed.work_ms = number(&flag, &value?, 60_000)?,
                _ => return Err(format!("unknown argument `{flag}`")),
            }
        }
        if parsed.urls.is_empty() {
            parsed.urls.push("http://127.0.0.1:3000".to_owned());
        }
        Ok(Some(parsed))
    }
}

fn url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    if url.starts_with("http://") {
        Ok(url.to_owned())
    } else {
        Err(format!("`{text}` is no URL such as http://127.0.0.1:3000"))
    }
}

fn number<T: Copy + FromStr + PartialOrd + From<u8> + std::fmt::Display>(
    flag: &str,
    text: &str,
    most: T,
) -> Result<T, String> {
    let number = text.parse().ok();
    number
        .filter(|number| *number >= T::from(1) && *number <= most)
        .ok_or_else(|| format!("`{flag}` is a number from 1 to {most}, not `{text}`"))
}
