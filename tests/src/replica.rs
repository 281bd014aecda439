//! Replicas of a service on one leased store, each with a link to it that can fail, and handlers
//! whose runs go as planned.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::{Extension, Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::{
    Caller, IdempotencyContext, IdempotencyRuntime, Settings, idempotent,
    testing::{Faulty, LeasedStore},
};
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::sleep};

use crate::http::{Reply, Runs, keyed, send};

/// The lease of all replicas; a claim is renewed each second.
pub const LEASE: Duration = Duration::from_secs(3);

/// Planned as its status, a run panics.
pub const PANIC: u16 = 999;

/// A store that all replicas share, and what their handlers have done.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// What is shared, without any fault.
    pub store: LeasedStore,
    /// All runs.
    pub runs: Runs,
    /// The runs that took effect.
    pub effects: Runs,
}

/// One replica.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Its link to the store.
    pub link: Faulty<LeasedStore>,
    /// Its runtime.
    pub runtime: IdempotencyRuntime,
    /// Its routes: `/`, `/closed` and `/unknown`.
    pub app: Router,
    work: Work,
}

/// How long a run takes, and how it ends.
type Plan = (Duration, StatusCode);

#[derive(Debug, Clone)]
struct Work {
    world: World,
    plans: Arc<Mutex<VecDeque<Plan>>>,
    lost: Arc<Mutex<Vec<bool>>>,
}

impl Work {
    async fn run(&self, context: &IdempotencyContext) -> (StatusCode, String) {
        let run = self.world.runs.add();
        let plan = self.plans.lock().pop_front();
        let (time, status) = plan.unwrap_or((Duration::ZERO, StatusCode::CREATED));
        sleep(time).await;
        assert!(status != PANIC, "as planned");
        if status.is_success() {
            let _ = self.world.effects.add();
        }
        self.lost.lock().push(context.lease_lost());
        (status, format!("run {run}"))
    }
}

#[idempotent]
async fn open(
    State(work): State<Work>,
    context: IdempotencyContext,
    _body: String,
) -> (StatusCode, String) {
    work.run(&context).await
}

#[idempotent(on_store_failure = "closed")]
async fn closed(
    State(work): State<Work>,
    context: IdempotencyContext,
    _body: String,
) -> (StatusCode, String) {
    work.run(&context).await
}

#[idempotent(on_store_failure = "closed", on_lost_run = "unknown")]
async fn unknown(
    State(work): State<Work>,
    context: IdempotencyContext,
    _body: String,
) -> (StatusCode, String) {
    work.run(&context).await
}

impl World {
    /// A replica with settings of the tests.
    #[must_use]
    pub fn replica(&self) -> Replica {
        self.replica_with(Settings::default().lease(LEASE))
    }

    /// A replica with these settings.
    ///
    /// # Panics
    ///
    /// Where they are out of bounds.
    #[must_use]
    pub fn replica_with(&self, settings: Settings) -> Replica {
        let link = Faulty::new(self.store.clone()).awaiting();
        let runtime = IdempotencyRuntime::builder()
            .caller(Caller::shared())
            .settings(settings)
            .store(link.clone())
            .build()
            .expect("settings in bounds");
        let work = Work {
            world: self.clone(),
            plans: Arc::default(),
            lost: Arc::default(),
        };
        let app = Router::new()
            .route("/", post(open))
            .route("/closed", post(closed))
            .route("/unknown", post(unknown))
            .with_state(work.clone())
            .layer(Extension(runtime.clone()));
        Replica {
            link,
            runtime,
            app,
            work,
        }
    }
}

impl Replica {
    /// Its next run that has no plan yet takes so long and ends so.
    ///
    /// # Panics
    ///
    /// Where `status` is none.
    #[must_use]
    pub fn plan(self, millis: u64, status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        let plan = (Duration::from_millis(millis), status);
        self.work.plans.lock().push_back(plan);
        self
    }

    /// What each of its runs heard of its lease at its end.
    #[must_use]
    pub fn leases_lost(&self) -> Vec<bool> {
        self.work.lost.lock().clone()
    }

    /// A request of `path` with the key `k`, in a task of its own.
    #[must_use]
    pub fn spawn(&self, path: &str, body: &'static str) -> JoinHandle<Reply> {
        self.spawn_with(path, "k", body)
    }

    /// The same with another key.
    #[must_use]
    pub fn spawn_with(&self, path: &str, key: &str, body: &'static str) -> JoinHandle<Reply> {
        let (app, request) = (self.app.clone(), keyed(path, key, body));
        let handle = tokio::runtime::Handle::current();
        handle.spawn(async move { send(&app, request).await })
    }

    /// Its answer to a request of `path` with the key `k`.
    pub async fn send(&self, path: &str, body: &'static str) -> Reply {
        send(&self.app, keyed(path, "k", body)).await
    }
}
