//! The example `orders`, from end to end: the real program over real HTTP.

use std::net::TcpListener;

use idempotent_tests::example::{Shop, is_replay, run};
use reqwest::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_duplicates_make_one_order_for_each_of_fifty_keys() {
    let shop = Shop::start();
    for round in 1..=50 {
        let mut sent = JoinSet::new();
        for _ in 0..200 {
            let order = json!({ "item": "tea", "quantity": round, "delay_ms": 5 });
            let request = shop.post("/orders", &format!("key {round}")).json(&order);
            sent.spawn(async move {
                let response = request.send().await.expect("an answer");
                assert_eq!(response.status(), StatusCode::CREATED);
                let replay = is_replay(&response);
                (replay, response.bytes().await.expect("a body"))
            });
        }
        let answers = sent.join_all().await;
        let first: Vec<_> = answers.iter().filter(|(replay, _)| !replay).collect();
        assert_eq!(first.len(), 1, "runs of round {round}");
        let expected = format!(r#"{{"id":{round},"item":"tea","quantity":{round}}}"#);
        for (_, body) in &answers {
            assert_eq!(body, expected.as_bytes());
        }
        assert_eq!(shop.rows("/orders").await.len(), round);
    }
    assert_eq!(shop.metric("idempotency_executed").await, 50);
    assert_eq!(shop.metric("idempotency_replayed").await, 50 * 199);
}

#[tokio::test]
async fn a_replay_is_the_first_answer_and_says_so() {
    let shop = Shop::start();
    let send = || {
        let order = json!({ "item": "tea", "quantity": 2 });
        shop.post("/orders", "k").json(&order).send()
    };
    let first = send().await.unwrap();
    let again = send().await.unwrap();
    for (response, replay) in [(first, None), (again, Some("true"))] {
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(header("location").as_deref(), Some("/orders/1"));
        assert_eq!(header("x-idempotent-replay").as_deref(), replay);
    }
    let located: serde_json::Value = serde_json::from_str(&shop.get("/orders/1").await).unwrap();
    assert_eq!(shop.rows("/orders").await, [located]);
}

#[tokio::test]
async fn callers_share_no_key_and_are_listed_beside_their_orders() {
    let shop = Shop::start();
    for authorization in [Some("Bearer alice"), Some("Bearer bob"), None] {
        let order = json!({ "item": "tea", "quantity": 2 });
        let mut request = shop.post("/orders", "k").json(&order);
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert!(!is_replay(&response), "{authorization:?}");
    }
    let rows = shop.rows("/orders").await;
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (&row["id"], &row["caller"]))
        .collect();
    let expected = json!([[1, "alice"], [2, "bob"], [3, "127.0.0.1"]]);
    assert_eq!(json!(seen), expected);

    let request = shop.post("/orders", "k").header("Authorization", "Basic x");
    let refused = request.json(&json!({})).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_failed_run_leaves_the_key_to_the_next_attempt() {
    let shop = Shop::start();
    let mut answers = Vec::new();
    for _ in 0..4 {
        let order = json!({ "item": "tea", "quantity": 2, "fail_times": 2 });
        let response = shop.post("/orders", "k").json(&order).send().await.unwrap();
        answers.push((response.status().as_u16(), is_replay(&response)));
    }
    assert_eq!(
        answers,
        [(503, false), (503, false), (201, false), (201, true)]
    );
    assert_eq!(shop.rows("/orders").await.len(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_finds_its_answer_when_it_comes_back() {
    let shop = Shop::start();
    let order = json!({ "item": "tea", "quantity": 2, "delay_ms": 2000 });
    let send = || shop.post("/orders", "k").json(&order).send();
    tokio::select! {
        response = send() => panic!("answered too early: {response:?}"),
        () = shop.until_in_flight(1) => {}
    }
    assert_eq!(
        shop.rows("/orders").await.len(),
        0,
        "the handler still works"
    );
    let again = send().await.unwrap();
    assert_eq!(again.status(), StatusCode::CREATED);
    assert!(is_replay(&again));
    assert_eq!(shop.rows("/orders").await.len(), 1);
}

#[tokio::test]
async fn a_cancellation_is_replayed_without_a_body_and_bound_to_its_path() {
    let shop = Shop::start();
    for key in ["1", "2"] {
        let order = json!({ "item": "tea", "quantity": 2 });
        shop.post("/orders", key).json(&order).send().await.unwrap();
    }
    let cancel = |id: u32| shop.post(&format!("/orders/{id}/cancel"), "k").send();
    for replay in [false, true] {
        let response = cancel(1).await.unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(is_replay(&response), replay);
        assert_eq!(response.bytes().await.unwrap(), "");
    }
    let other = cancel(2).await.unwrap();
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let missing = shop.post("/orders/9/cancel", "other").send().await.unwrap();
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let cancelled = shop
        .rows("/orders")
        .await
        .iter()
        .map(|row| row["cancelled"] == true)
        .collect::<Vec<_>>();
    assert_eq!(cancelled, [true, false]);
}

#[tokio::test]
async fn one_generic_handler_keeps_its_resources_apart() {
    let shop = Shop::start();
    let refund = json!({ "order_id": 7, "amount": 250 });
    let customer = json!({ "name": "Ada" });
    for replay in [false, true] {
        for (path, body, expected) in [
            (
                "/refunds",
                &refund,
                json!({ "id": 1, "order_id": 7, "amount": 250 }),
            ),
            ("/customers", &customer, json!({ "id": 1, "name": "Ada" })),
        ] {
            let response = shop.post(path, "k").json(body).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::CREATED, "{path}");
            assert_eq!(response.headers()["location"], format!("{path}/1"));
            assert_eq!(is_replay(&response), replay, "{path}");
            let created: serde_json::Value = response.json().await.unwrap();
            assert_eq!(created, expected);
        }
    }
    for path in ["/refunds", "/customers"] {
        assert_eq!(shop.rows(path).await.len(), 1, "{path}");
    }
}

#[tokio::test]
async fn a_bad_order_is_refused_by_the_extractor_and_claims_nothing() {
    let shop = Shop::start();
    for (order, complaint) in [
        (
            json!({ "item": "tea", "quantity": 1, "colour": "red" }),
            "unknown field `colour`",
        ),
        (
            json!({ "item": "tea", "quantity": 0 }),
            "quantity: invalid value: integer `0`, expected a number from 1 to 1000",
        ),
        (json!({ "item": "tea", "quantity": 1001 }), "from 1 to 1000"),
        (
            json!({ "item": "tea", "quantity": 1, "delay_ms": 60_001 }),
            "from 0 to 60000",
        ),
        (json!({ "item": 1, "quantity": 1 }), "item: invalid type"),
        (json!({ "quantity": 1 }), "missing field `item`"),
    ] {
        let response = shop.post("/orders", "k").json(&order).send().await.unwrap();
        assert_eq!(
            response.status(),
            StatusCode::UNPROCESSABLE_ENTITY,
            "{order}"
        );
        let text = response.text().await.unwrap();
        assert!(text.contains(complaint), "{order}: {text}");
    }
    let order = json!({ "item": "tea", "quantity": 1 });
    let response = shop.post("/orders", "k").json(&order).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn metrics_tell_runs_replays_and_conflicts_apart() {
    let shop = Shop::start();
    for quantity in [1, 1, 1, 2] {
        let order = json!({ "item": "tea", "quantity": quantity });
        shop.post("/orders", "k").json(&order).send().await.unwrap();
    }
    for (metric, value) in [
        ("idempotency_executed", 1),
        ("idempotency_replayed", 2),
        (r#"idempotency_conflict{kind="body_mismatch"}"#, 1),
        ("idempotency_in_flight", 0),
    ] {
        assert_eq!(shop.metric(metric).await, value, "{metric}");
    }
}

#[tokio::test]
async fn ctrl_c_and_sigterm_finish_what_runs() {
    for signal in ["INT", "TERM"] {
        let mut shop = Shop::start();
        let order = |item| json!({ "item": item, "quantity": 1, "delay_ms": 3000 });
        let mut sent = JoinSet::new();
        sent.spawn(shop.post("/orders", "a").json(&order("tea")).send());
        tokio::select! {
            response = shop.post("/orders", "b").json(&order("coffee")).send() => panic!("{response:?}"),
            () = shop.until_in_flight(2) => {}
        }
        shop.signal(signal);
        let answers = sent.join_all().await;
        let response = answers[0].as_ref().expect("an answer after the signal");
        assert_eq!(response.status(), StatusCode::CREATED);
        let (success, printed) = shop.ended();
        assert!(success, "{printed}");
        assert!(
            printed.contains("Stopped: no order was left half done."),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn a_second_ctrl_c_stops_at_once() {
    let mut shop = Shop::start();
    let order = json!({ "item": "tea", "quantity": 1, "delay_ms": 60_000 });
    let mut sent = JoinSet::new();
    sent.spawn(shop.post("/orders", "k").json(&order).send());
    shop.until_in_flight(1).await;
    shop.signal("INT");
    shop.until_stopping();
    shop.signal("INT");
    let (success, printed) = shop.ended();
    assert!(!success, "{printed}");
    assert!(sent.join_all().await[0].is_err(), "nobody answered");
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    for (args, complaint) in [
        (
            &["--lisen", "127.0.0.1:0"][..],
            "unknown argument `--lisen`",
        ),
        (&["--listen"], "`--listen` needs a value"),
        (&["--listen", "3000"], "`3000` is no address with a port"),
        (
            &["--store", "redis"],
            "unknown store `redis`: there are `memory` and a URL such as `redis://127.0.0.1:6379`",
        ),
    ] {
        let output = run("orders", args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(complaint), "{text}");
        assert!(text.contains("Usage: orders"), "{text}");
    }
    let help = run("orders", &["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .starts_with("Usage: orders")
    );
}

#[test]
fn settings_out_of_bounds_are_explained() {
    let output = run("orders", &["--lease", "1ms", "--on-store-failure", "maybe"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("lease"), "{text}");
    assert!(text.contains("on_store_failure"), "{text}");
}

#[tokio::test]
async fn copies_that_share_a_file_of_rows_show_the_same_orders() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows");
    let args = ["--rows", file.to_str().unwrap()];
    let (one, two) = (Shop::with(&args), Shop::with(&args));
    let order = |item| json!({ "item": item, "quantity": 2 });
    for (shop, item) in [(&one, "tea"), (&two, "coffee"), (&one, "milk")] {
        let response = shop.post("/orders", item).json(&order(item)).send().await;
        assert_eq!(response.unwrap().status(), StatusCode::CREATED, "{item}");
    }
    let rows = one.rows("/orders").await;
    let id = rows[1]["id"].as_u64().unwrap();
    let cancelled = one.post(&format!("/orders/{id}/cancel"), "k").send().await;
    assert_eq!(cancelled.unwrap().status(), StatusCode::NO_CONTENT);
    drop((one, two));

    let later = Shop::with(&args);
    let rows = later.rows("/orders").await;
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                &row["item"],
                &row["key"],
                &row["guarded"],
                &row["cancelled"],
            )
        })
        .collect();
    let expected = json!([
        ["tea", "tea", true, null],
        ["coffee", "coffee", true, true],
        ["milk", "milk", true, null]
    ]);
    assert_eq!(json!(seen), expected);
    let located = later.get(&format!("/orders/{id}")).await;
    let located: serde_json::Value = serde_json::from_str(&located).unwrap();
    assert_eq!(located, rows[1]);
}

#[test]
fn a_port_that_is_taken_is_explained() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run("orders", &["--listen", &address]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("another program listens there: choose another port"),
        "{text}"
    );
}
