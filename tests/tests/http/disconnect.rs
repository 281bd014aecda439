//! Clients that hang up, and everything else that drops a run: the work ends all the same.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::http::{Embedded, Runs, hang_up, keyed, send, until};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};
use tower::ServiceExt;
use tower_http::timeout::TimeoutLayer;

/// Runs counts beginnings; the second one, ends.
#[derive(Clone, Default)]
struct Counts {
    began: Runs,
    ended: Runs,
}

/// Sleeps as many milliseconds as the body says, in two parts; "panic" panics between them.
#[idempotent]
async fn nap(State(counts): State<Counts>, body: String) -> (StatusCode, String) {
    let run = counts.began.add();
    let millis: u64 = body.trim_end_matches(" panic").parse().unwrap();
    tokio::time::sleep(Duration::from_millis(millis / 2)).await;
    assert!(!body.ends_with("panic") || run > 1, "boom");
    tokio::time::sleep(Duration::from_millis(millis / 2)).await;
    let _ = counts.ended.add();
    (StatusCode::CREATED, run.to_string())
}

struct Fixture {
    embedded: Embedded,
    app: Router,
    counts: Counts,
}

impl Fixture {
    fn new() -> Self {
        let embedded = Embedded::shared();
        let counts = Counts::default();
        let app = embedded.on(Router::new()
            .route("/", post(nap))
            .with_state(counts.clone()));
        Self {
            embedded,
            app,
            counts,
        }
    }

    /// Beginnings, ends, claims, records, runs in flight.
    fn state(&self) -> (usize, usize, usize, usize, usize) {
        let in_progress = self.embedded.store.in_progress();
        let records = self.embedded.store.len().saturating_sub(in_progress);
        (
            self.counts.began.count(),
            self.counts.ended.count(),
            in_progress,
            records,
            self.embedded.runtime.in_flight(),
        )
    }
}

/// Both kinds of runtime, without paused time: tasks and threads are the point here.
fn both(test: impl Fn(&Runtime)) {
    test(&Builder::new_current_thread().enable_all().build().unwrap());
    test(
        &Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    );
}

#[test]
fn b017_a_client_that_hangs_up_changes_nothing() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            hang_up(&it.app, keyed("/", "k", "100"), Duration::from_millis(10)).await;
            assert_eq!(it.state(), (1, 0, 1, 0, 1));
            let second = send(&it.app, keyed("/", "k", "100")).await;
            assert_eq!(
                (second.outcome(), second.text().as_str()),
                ((201, true), "1")
            );
            until(|| it.state() == (1, 1, 0, 1, 0)).await;
        });
    });
}

#[test]
fn timeouts_and_selects_end_the_run_too() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            let limit = TimeoutLayer::with_status_code(
                StatusCode::REQUEST_TIMEOUT,
                Duration::from_millis(10),
            );
            let app = it.app.clone().layer(limit);
            assert_eq!(send(&app, keyed("/", "a", "60")).await.status, 408);
            tokio::select! {
                biased;
                _ = it.app.clone().oneshot(keyed("/", "b", "60")) => panic!("too early"),
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
            }
            until(|| it.state() == (2, 2, 0, 2, 0)).await;
            assert_eq!(
                send(&app, keyed("/", "a", "60")).await.outcome(),
                (201, true)
            );
        });
    });
}

#[test]
fn a_panic_after_the_client_left_frees_the_key() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            hang_up(
                &it.app,
                keyed("/", "k", "60 panic"),
                Duration::from_millis(5),
            )
            .await;
            until(|| it.state() == (1, 0, 0, 0, 0)).await;
            assert_eq!(
                send(&it.app, keyed("/", "k", "60 panic")).await.outcome(),
                (201, false)
            );
        });
    });
}

#[test]
fn a_run_that_panicked_is_never_polled_again() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            let mut run = Box::pin(it.app.clone().oneshot(keyed("/", "k", "20 panic")));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(run.as_mut().poll(&mut cx).is_pending());
            tokio::time::sleep(Duration::from_millis(30)).await;
            let poll = std::panic::AssertUnwindSafe(|| run.as_mut().poll(&mut cx).is_ready());
            assert!(std::panic::catch_unwind(poll).is_err());
            assert_eq!(it.state(), (1, 0, 0, 0, 0));
            drop(run);
            assert_eq!(it.state(), (1, 0, 0, 0, 0));
        });
    });
}

#[test]
fn somebody_elses_panic_ends_nothing() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            let app = it.app.clone();
            let task = tokio::spawn(async move {
                let mut run = Box::pin(app.oneshot(keyed("/", "k", "40")));
                std::future::poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_pending())).await;
                panic!("unrelated");
            });
            assert!(task.await.is_err());
            until(|| it.state() == (1, 1, 0, 1, 0)).await;
        });
    });
}

#[test]
fn a_runtime_that_shuts_down_frees_its_keys() {
    for how in 0..3 {
        let it = Fixture::new();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            for n in 0..8 {
                hang_up(
                    &it.app,
                    keyed("/", &format!("k{n}"), "600000"),
                    Duration::from_millis(5),
                )
                .await;
                drop(tokio::spawn(it.app.clone().oneshot(keyed(
                    "/",
                    &format!("l{n}"),
                    "600000",
                ))));
            }
            until(|| it.state() == (16, 0, 16, 0, 16)).await;
        });
        match how {
            0 => drop(runtime),
            1 => runtime.shutdown_timeout(Duration::from_millis(500)),
            _ => runtime.shutdown_background(),
        }
        let other = Builder::new_current_thread().enable_all().build().unwrap();
        other.block_on(until(|| it.state() == (16, 0, 0, 0, 0)));
    }
}

#[test]
fn a_run_dropped_outside_of_a_runtime_ends_on_the_one_that_polled_it() {
    both(|runtime| {
        let it = Fixture::new();
        let mut run = Box::pin(it.app.clone().oneshot(keyed("/", "k", "40")));
        runtime.block_on(std::future::poll_fn(|cx| {
            Poll::Ready(assert!(run.as_mut().poll(cx).is_pending()))
        }));
        std::thread::spawn(move || drop(run)).join().unwrap();
        runtime.block_on(until(|| it.state() == (1, 1, 0, 1, 0)));
    });
    // nothing can run it any more: its key is free
    let it = Fixture::new();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut run = Box::pin(it.app.clone().oneshot(keyed("/", "k", "40")));
    runtime.block_on(std::future::poll_fn(|cx| {
        Poll::Ready(assert!(run.as_mut().poll(cx).is_pending()))
    }));
    drop(runtime);
    drop(run);
    assert_eq!(it.state(), (1, 0, 0, 0, 0));
}

#[test]
fn a_run_that_was_never_polled_claims_nothing() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            drop(it.app.clone().oneshot(keyed("/", "k", "40")));
            assert_eq!(it.state(), (0, 0, 0, 0, 0));
        });
    });
}

#[test]
fn a_closed_connection_is_a_client_that_hung_up() {
    both(|runtime| {
        runtime.block_on(async {
            let it = Fixture::new();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let app = it.app.clone();
            drop(tokio::spawn(async move { axum::serve(listener, app).await }));
            let mut client = TcpStream::connect(address).await.unwrap();
            client
                .write_all(b"POST / HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\n200")
                .await
                .unwrap();
            until(|| it.state().0 == 1).await;
            drop(client);
            let mut again = TcpStream::connect(address).await.unwrap();
            again
                .write_all(b"POST / HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-type: text/plain\r\ncontent-length: 3\r\nconnection: close\r\n\r\n200")
                .await
                .unwrap();
            let mut reply = String::new();
            again.read_to_string(&mut reply).await.unwrap();
            assert!(reply.starts_with("HTTP/1.1 201") && reply.contains("x-idempotent-replay: true"), "{reply}");
            until(|| it.state() == (1, 1, 0, 1, 0)).await;
        });
    });
}

/// Registers a waker once and is woken from another thread after its first owner has gone.
struct Handover(std::sync::mpsc::Sender<Waker>, bool);

impl Future for Handover {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.1 {
            return Poll::Ready(());
        }
        self.1 = true;
        drop(self.0.send(cx.waker().clone()));
        Poll::Pending
    }
}

#[idempotent]
async fn handed_over(
    State((counts, wakers)): State<(Counts, std::sync::mpsc::Sender<Waker>)>,
) -> String {
    let _ = counts.began.add();
    Handover(wakers, false).await;
    counts.ended.add().to_string()
}

#[test]
fn a_wake_up_is_not_lost_on_the_way_to_the_task() {
    both(|runtime| {
        let (sender, wakers) = std::sync::mpsc::channel();
        let counts = Counts::default();
        let embedded = Embedded::shared();
        let app = embedded.on(Router::new()
            .route("/", post(handed_over))
            .with_state((counts.clone(), sender)));
        runtime.block_on(async {
            for n in 0..500 {
                let mut run = Box::pin(app.clone().oneshot(keyed("/", &format!("k{n}"), "")));
                std::future::poll_fn(|cx| Poll::Ready(assert!(run.as_mut().poll(cx).is_pending())))
                    .await;
                let waker = wakers.recv().unwrap();
                let wake = std::thread::spawn(move || waker.wake());
                drop(run);
                wake.join().unwrap();
            }
            until(|| counts.ended.count() == 500 && embedded.runtime.in_flight() == 0).await;
        });
    });
}

tokio::task_local! {
    static TENANT: u32;
}

#[idempotent]
async fn local(State(counts): State<Counts>) -> String {
    let _ = counts.began.add();
    TENANT.with(|tenant| tenant.to_string())
}

#[test]
fn task_locals_are_there_while_the_client_is() {
    both(|runtime| {
        runtime.block_on(async {
            let counts = Counts::default();
            let app =
                Embedded::shared().on(Router::new().route("/", post(local)).with_state(counts));
            let reply = TENANT.scope(7, send(&app, keyed("/", "k", ""))).await;
            assert_eq!(reply.text(), "7");
        });
    });
}
