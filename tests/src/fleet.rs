//! Replicas of a service over one Redis, each behind a proxy of its own.

use std::time::Duration;

use axum::{Extension, Router};
use idempotent_runtime::{Caller, IdempotencyRuntime, RedisStore, Settings};
use tokio::task::JoinHandle;

use crate::{
    http::{Reply, keyed, send},
    proxy::Proxy,
    redis::RedisServer,
};

/// The namespace of all replicas.
pub const NAMESPACE: &str = "fleet";

/// A server, and the replicas that share it.
#[derive(Debug)]
pub struct Fleet {
    /// Their server.
    pub server: RedisServer,
    settings: Settings,
}

/// One replica: a runtime and a store of its own, as in a process of its own.
#[derive(Debug)]
pub struct Member {
    /// Between it and the server.
    pub link: Proxy,
    /// Its runtime.
    pub runtime: IdempotencyRuntime,
    /// Its routes.
    pub app: Router,
}

impl Fleet {
    /// A server of its own.
    #[must_use]
    pub fn start() -> Self {
        Self::with(Settings::default())
    }

    /// A server of its own, for replicas with these settings.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Self {
            server: RedisServer::start(),
            settings,
        }
    }

    /// A replica that serves these routes.
    ///
    /// # Panics
    ///
    /// Where it cannot be built.
    pub async fn member(&self, routes: Router) -> Member {
        let link = Proxy::to(self.server.address().parse().expect("an address"));
        let url = format!("redis://{}", link.address());
        let store = RedisStore::connect(&url, NAMESPACE).await;
        let runtime = IdempotencyRuntime::builder()
            .caller(Caller::authorization().or(Caller::shared()))
            .settings(self.settings.clone())
            .store(store.expect("a server that can be used"))
            .build()
            .expect("settings in bounds");
        Member {
            link,
            app: routes.layer(Extension(runtime.clone())),
            runtime,
        }
    }

    /// Two of them.
    pub async fn two(&self, routes: impl Fn() -> Router) -> [Member; 2] {
        [self.member(routes()).await, self.member(routes()).await]
    }

    /// The stored keys.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let keys = self.server.cli(&["--raw", "KEYS", "*"]);
        keys.lines().map(str::to_owned).collect()
    }

    /// Those of them without an end.
    #[must_use]
    pub fn endless_keys(&self) -> Vec<String> {
        let endless = |key: &String| self.server.cli(&["--raw", "PTTL", key]).trim() == "-1";
        self.keys().into_iter().filter(endless).collect()
    }
}

impl Member {
    /// A request, in a task of its own.
    #[must_use]
    pub fn spawn(&self, path: &str, key: &str, body: &str) -> JoinHandle<Reply> {
        let (app, request) = (self.app.clone(), keyed(path, key, body.to_owned()));
        let handle = tokio::runtime::Handle::current();
        handle.spawn(async move { send(&app, request).await })
    }

    /// Its answer to a request.
    pub async fn send(&self, path: &str, key: &str, body: &str) -> Reply {
        send(&self.app, keyed(path, key, body.to_owned())).await
    }

    /// Waits until its runtime finds that the store can be used.
    ///
    /// # Panics
    ///
    /// Where it does not within ten seconds.
    pub async fn until_guarded(&self) {
        let guarded = async {
            while !self.runtime.health().await.is_guarded() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(10), guarded).await;
        found.expect("the store is found to work again");
    }
}
