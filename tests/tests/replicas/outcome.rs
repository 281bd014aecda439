//! K03: a first run that ends without a stored response leaves the key usable.

use axum::{Router, extract::State, http::StatusCode, routing::post};
use idempotent_runtime::idempotent;
use idempotent_tests::{
    fleet::Fleet,
    http::{Runs, hang_up, keyed},
};
use tokio::time::{Instant, sleep};

use super::millis;

/// Fails as often as the body says.
#[idempotent]
async fn fails_first(State(runs): State<Runs>, times: String) -> (StatusCode, String) {
    let run = runs.add();
    if run <= times.parse().unwrap_or_default() {
        return (StatusCode::BAD_GATEWAY, String::new());
    }
    (StatusCode::CREATED, format!("run {run}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn b015_b019_failures_leave_the_key_as_if_never_used() {
    let fleet = Fleet::start();
    for times in [1, 5] {
        let runs = Runs::default();
        let routes = || {
            let routes = Router::new().route("/", post(fails_first));
            routes.with_state(runs.clone())
        };
        let members = fleet.two(routes).await;
        let (key, body) = (format!("k{times}"), times.to_string());
        let began = Instant::now();
        for n in 0..times {
            let reply = members[n % 2].send("/", &key, &body).await;
            assert_eq!(reply.outcome(), (502, false));
        }
        let success = members[times % 2].send("/", &key, &body).await;
        assert_eq!(success.outcome(), (201, false));
        assert!(began.elapsed() < millis(1000), "{:?}", began.elapsed());
        for member in &members {
            let again = member.send("/", &key, &body).await;
            assert_eq!((again.outcome(), &again.body), ((201, true), &success.body));
        }
        assert_eq!(runs.count(), times + 1);
    }
}

#[idempotent]
async fn panics_first(State(runs): State<Runs>) -> StatusCode {
    sleep(millis(10)).await;
    assert!(runs.add() > 1, "the first run");
    StatusCode::CREATED
}

#[tokio::test(flavor = "multi_thread")]
async fn b016_a_panic_frees_the_key() {
    let (fleet, runs) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(panics_first));
        routes.with_state(runs.clone())
    };
    let [one, two] = fleet.two(routes).await;
    assert!(one.spawn("/", "k", "").await.unwrap_err().is_panic());
    let began = Instant::now();
    assert_eq!(two.send("/", "k", "").await.outcome(), (201, false));
    assert!(began.elapsed() < millis(1000), "{:?}", began.elapsed());
    assert_eq!(one.send("/", "k", "").await.outcome(), (201, true));
}

/// Writes a row, works, and writes another one.
#[idempotent]
async fn two_rows(State(rows): State<Runs>, _body: String) -> StatusCode {
    let _ = rows.add();
    sleep(millis(1000)).await;
    let _ = rows.add();
    StatusCode::CREATED
}

#[tokio::test(flavor = "multi_thread")]
async fn b017_a_client_that_hangs_up_changes_nothing() {
    let (fleet, rows) = (Fleet::start(), Runs::default());
    let routes = || {
        let routes = Router::new().route("/", post(two_rows));
        routes.with_state(rows.clone())
    };
    let [one, two] = fleet.two(routes).await;
    hang_up(&one.app, keyed("/", "k", ""), millis(300)).await;
    let reply = two.send("/", "k", "").await;
    assert_eq!((reply.outcome(), rows.count()), ((201, true), 2));
}
