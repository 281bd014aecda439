//! A shop whose clients may retry: `cargo run --release --example orders`.
//!
//! Start reading at [`orders`], where the attribute stands on its handlers, and at [`run`] below,
//! where the runtime is built.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to its user"
)]

mod app;
mod args;
mod book;
mod bounded;
mod caller;
mod demo;
mod orders;
mod resource;
mod signals;
mod table;

use std::{error::Error, io, net::SocketAddr, process::ExitCode, time::Duration};

#[cfg(feature = "redis")]
use idempotent_runtime::RedisStore;
use idempotent_runtime::{Caller, IdempotencyRuntime, MemoryStore};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::{net::TcpListener, sync::oneshot};

use self::{
    args::{Args, Store},
    book::Book,
    signals::Signals,
};

/// Longer than the slowest order, so that a stop loses none.
const DRAIN: Duration = Duration::from_secs(65);

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(mistake) => {
            eprintln!("orders: {mistake}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    // Before the runtime, which tells the recorder what its metrics mean.
    let metrics = PrometheusBuilder::new().install_recorder()?;

    let runtime = IdempotencyRuntime::builder()
        .caller(Caller::subject().or(Caller::peer()))
        .settings(args.settings);
    let runtime = match args.store {
        Store::Memory => runtime.store(MemoryStore::new()),
        // One that cannot be reached yet is no error; the store comes back by itself.
        #[cfg(feature = "redis")]
        Store::Redis(url) => runtime.store(RedisStore::connect(&url, "orders-example").await?),
    };
    let runtime = runtime.build()?;
    // The handlers find the installed runtime by themselves; this copy is for the shutdown.
    runtime.install()?;

    let orders = Book::open(args.rows.as_deref())?;
    let mut signals = Signals::listen()?;
    let listener = bind(args.listen).await?;
    let address = listener.local_addr()?;
    let app = app::router(address, orders, runtime.clone(), metrics)
        .into_make_service_with_connect_info::<SocketAddr>();

    let (stop, asked_to_stop) = oneshot::channel::<()>();
    let serve = async {
        let server = axum::serve(listener, app).with_graceful_shutdown(async {
            drop(asked_to_stop.await);
        });
        let (stopped, ()) = tokio::join!(server, demo::welcome(address, args.demo));
        stopped?;
        // The server has answered its last client. Runs whose clients have left go on until here.
        runtime.drain(DRAIN).await?;
        println!("Stopped: no order was left half done.");
        Ok(())
    };
    let interrupt = async {
        signals.next().await;
        println!("Stopping: running orders are finished. Ctrl-C again stops at once.");
        let _ = stop.send(());
        signals.next().await;
    };
    tokio::select! {
        end = serve => end,
        () = interrupt => Err("stopped before all orders were finished".into()),
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        let advice = if error.kind() == io::ErrorKind::AddrInUse {
            "; another program listens there: choose another port with `cargo run --release --example orders -- --listen 127.0.0.1:3001`, or any free one with `127.0.0.1:0`"
        } else {
            ""
        };
        format!("cannot listen on {address}: {error}{advice}")
    })
}
