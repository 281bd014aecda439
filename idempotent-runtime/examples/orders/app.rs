//! The routes, and what their handlers share.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    middleware,
    routing::{get, post},
};
use idempotent_runtime::IdempotencyRuntime;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};

use crate::{
    book::Book,
    caller,
    orders::{self, Failures},
    resource::{self, Customer, Refund},
    table::Table,
};

/// The shop's data. In memory, like a database that forgets at a restart, but for an order book in
/// a file.
#[derive(Clone)]
pub(crate) struct Shop(Arc<Tables>);

pub(crate) struct Tables {
    /// This copy of the program, by its address.
    pub(crate) copy: SocketAddr,
    pub(crate) orders: Book,
    pub(crate) refunds: Table<Refund>,
    pub(crate) customers: Table<Customer>,
    pub(crate) failures: Failures,
}

impl std::ops::Deref for Shop {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.0
    }
}

pub(crate) fn router(
    copy: SocketAddr,
    orders: Book,
    runtime: IdempotencyRuntime,
    metrics: PrometheusHandle,
) -> Router {
    let shop = Shop(Arc::new(Tables {
        copy,
        orders,
        refunds: Table::default(),
        customers: Table::default(),
        failures: Failures::default(),
    }));
    Router::new()
        .route("/orders", post(orders::create).get(orders::list))
        .route("/orders/{id}", get(orders::read))
        .route("/orders/{id}/cancel", post(orders::cancel))
        .route(
            "/refunds",
            post(resource::create::<Refund>).get(resource::list::<Refund>),
        )
        .route(
            "/customers",
            post(resource::create::<Customer>).get(resource::list::<Customer>),
        )
        .with_state(shop)
        .layer(middleware::from_fn(caller::identify))
        .route("/health", get(health).with_state(runtime))
        .route("/metrics", get(scrape).with_state(metrics))
}

/// Whether orders are guarded now. Always 200: this shop sells without its store too. One that
/// refuses then (`on_store_failure = "closed"`) may as well answer 503 here.
async fn health(State(runtime): State<IdempotencyRuntime>) -> Json<Value> {
    let health = runtime.health().await;
    Json(json!({
        "guarded": health.is_guarded(),
        "in_flight": health.in_flight,
        "pending_reports": health.pending_reports,
    }))
}

/// What Prometheus scrapes.
async fn scrape(State(metrics): State<PrometheusHandle>) -> String {
    // Moves histogram samples into their buckets, which a listener of the exporter's own would do.
    metrics.run_upkeep();
    metrics.render()
}
