//! The running copies, and what they say of the orders that were created.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use reqwest::Client;
use serde::Deserialize;

use crate::args::Args;

/// Longer than a duplicate waits by default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The copies, and this run of the storm.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) http: Client,
    pub(crate) urls: Arc<[String]>,
    pub(crate) work_ms: u64,
    /// Begins every key of this run, so that no earlier run has used them.
    run: Arc<str>,
}

/// What is read of a row of `GET /orders`.
#[derive(Deserialize)]
struct Row {
    id: u64,
    key: Option<String>,
    copy: String,
}

/// The orders of this run that the copies know.
#[derive(Default)]
pub(crate) struct Rows {
    /// How many were created for each key.
    pub(crate) by_key: HashMap<String, usize>,
    /// Copies that do not answer any more, whose orders may be missing.
    pub(crate) without: Vec<String>,
}

impl Shop {
    pub(crate) fn of(args: &Args) -> Result<Self, String> {
        // A proxy of the environment is not asked for this machine.
        let http = Client::builder().no_proxy().timeout(TIMEOUT).build();
        Ok(Self {
            http: http.map_err(|error| error.to_string())?,
            urls: args.urls.clone().into(),
            work_ms: args.work_ms,
            run: format!("storm-{:016x}", RandomState::new().hash_one(())).into(),
        })
    }

    /// The key of the order of this number.
    pub(crate) fn key(&self, number: u64) -> String {
        format!("{}-{number}", self.run)
    }

    /// Whether every copy answers.
    pub(crate) async fn check(&self) -> Result<(), String> {
        for url in &*self.urls {
            self.listed(url).await?;
        }
        Ok(())
    }

    /// The orders of this run. Copies that share a file of rows all tell the same; the others each
    /// tell their own.
    pub(crate) async fn rows(&self) -> Rows {
        let mut seen = HashSet::new();
        let mut rows = Rows::default();
        for url in &*self.urls {
            let Ok(listed) = self.listed(url).await else {
                rows.without.push(url.clone());
                continue;
            };
            for row in listed {
                let key = row.key.filter(|key| key.starts_with(&*self.run));
                let Some(key) = key else { continue };
                if seen.insert((row.copy, row.id)) {
                    *rows.by_key.entry(key).or_default() += 1;
                }
            }
        }
        rows
    }

    async fn listed(&self, url: &str) -> Result<Vec<Row>, String> {
        let address = url.trim_start_matches("http://");
        let response = self.http.get(format!("{url}/orders")).send().await;
        let response = response.map_err(|_| {
            format!(
                "{url} does not answer: start it with `cargo run --release --features redis --example orders -- --listen {address} --store redis://127.0.0.1:6379`"
            )
        })?;
        let rows = response.json().await;
        rows.map_err(|_| {
            format!("{url} is no example `orders`: GET {url}/orders is no list of rows")
        })
    }
}
