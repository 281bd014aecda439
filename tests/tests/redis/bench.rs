//! A store on a server, and what stands at its keys.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    RedisStore, StorageKey,
    store::{
        Claim, ClaimOutcome, CompleteOutcome, Record, ReleaseOutcome, RenewOutcome, Store as _,
        StoreError, Token,
    },
};
use idempotent_tests::{redis::RedisServer, store::HOUR};

/// The namespace of all tests here.
pub(crate) const NAMESPACE: &str = "tests";

/// A store on this server.
pub(crate) async fn store(server: &RedisServer) -> RedisStore {
    store_at(&server.url()).await
}

/// A store at this address.
pub(crate) async fn store_at(url: &str) -> RedisStore {
    let store = RedisStore::connect(url, NAMESPACE).await;
    store.expect("the server can be used or is not there")
}

/// What the key is called on the server.
pub(crate) fn stored(key: &StorageKey) -> String {
    format!("{NAMESPACE}:{{{key}}}")
}

/// The four commands, awaited.
pub(crate) struct Client<'a> {
    pub(crate) store: &'a RedisStore,
    pub(crate) key: StorageKey,
}

pub(crate) type Answer<T> = Result<T, StoreError>;

impl Client<'_> {
    pub(crate) async fn claim(&self, claim: Claim) -> Answer<ClaimOutcome> {
        self.store.claim(&self.key, claim).answer().await
    }

    pub(crate) async fn renew(&self, claim: Claim) -> Answer<RenewOutcome> {
        self.store.renew(&self.key, claim).answer().await
    }

    pub(crate) async fn complete(
        &self,
        token: Token,
        record: Arc<Record>,
    ) -> Answer<CompleteOutcome> {
        self.complete_for(token, record, HOUR).await
    }

    pub(crate) async fn complete_for(
        &self,
        token: Token,
        record: Arc<Record>,
        retention: Duration,
    ) -> Answer<CompleteOutcome> {
        let completed = self.store.complete(&self.key, token, record, retention);
        completed.answer().await
    }

    pub(crate) async fn release(&self, token: Token) -> Answer<ReleaseOutcome> {
        self.store.release(&self.key, token).answer().await
    }
}

/// The keys that stand on the server, each with its time to live in milliseconds; -1 for one
/// without an end.
pub(crate) fn keys(server: &RedisServer) -> Vec<(String, i64)> {
    let keys = server.cli(&["KEYS", "*"]);
    let keys = keys.lines().filter(|key| !key.is_empty());
    keys.map(|key| {
        let left = server.cli(&["PTTL", key]);
        (key.to_owned(), left.parse().expect("a number"))
    })
    .filter(|(_, left)| *left != -2)
    .collect()
}

/// Waits until it is so, for ten seconds at most.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within ten seconds");
}
