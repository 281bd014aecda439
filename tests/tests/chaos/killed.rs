//! A process that dies in its handler: the key is free after the lease, and not before.

use std::{collections::BTreeSet, time::Duration};

use idempotent_tests::{
    chaos::{Copy, Ms, Random, Row, everlasting, now, pause, rows},
    redis::RedisServer,
};
use reqwest::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How long the handler works that is killed.
const WORK: Ms = 25;
const LEASE: Ms = 1000;
const KILLS: usize = 100;

/// The answer to one order: whether it is a replay, and when it came.
#[derive(Debug)]
struct Answer {
    replay: bool,
    body: String,
    at: Ms,
}

/// Orders once; `None` without an answer.
async fn order(http: Client, url: String, key: String, delay_ms: Ms) -> Option<Answer> {
    let request = http
        .post(format!("{url}/orders"))
        .header("Idempotency-Key", format!("\"{key}\""))
        .json(&json!({ "item": key, "quantity": 1, "delay_ms": delay_ms }));
    let response = request.send().await.ok()?;
    assert_eq!(response.status(), 201, "{key}");
    let replay = response.headers().contains_key("x-idempotent-replay");
    let body = response.text().await.ok()?;
    Some(Answer {
        replay,
        body,
        at: now(),
    })
}

/// What a kill left at the key.
#[derive(Debug)]
enum Left {
    Nothing,
    /// Until some time between these two.
    Claim(Ms, Ms),
    Record,
}

fn keys(redis: &RedisServer) -> BTreeSet<String> {
    let keys = redis.cli(&["KEYS", "*"]);
    let keys = keys.lines().filter(|key| !key.is_empty());
    keys.map(str::to_owned).collect()
}

/// What stands at the key that was not there before.
fn left(redis: &RedisServer, before: &BTreeSet<String>) -> Left {
    let fresh: Vec<_> = keys(redis).difference(before).cloned().collect();
    let Some(key) = fresh.first() else {
        return Left::Nothing;
    };
    assert_eq!(fresh.len(), 1, "one request, one key: {fresh:?}");
    let earliest = now();
    let ttl: i64 = redis.cli(&["PTTL", key]).parse().expect("a number");
    let ttl = Ms::try_from(ttl).expect("an expiry");
    if ttl > LEASE {
        Left::Record
    } else {
        Left::Claim(earliest + ttl, now() + ttl)
    }
}

fn of<'a>(rows: &'a [Row], key: &str) -> Vec<&'a Row> {
    let same = rows.iter().filter(|row| row.key.as_deref() == Some(key));
    same.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_hundred_kills_each_key_is_free_after_the_lease_and_not_before() {
    let _machine = crate::MACHINE.lock().await;
    let (redis, dir, http) = (RedisServer::start(), directory(), client());
    let args = ["--lease", "1s", "--store-timeout", "1s"];
    let victim = Copy::start(&redis, dir.path(), "victim", &args);
    let survivor = Copy::start(&redis, dir.path(), "survivor", &args);
    let home = survivor.url().expect("it lives");
    let mut random = Random::new(0);
    let (mut kills, mut retries) = (Vec::new(), JoinSet::new());
    let mut known = BTreeSet::new();
    for kill in 0..KILLS {
        let key = format!("kill-{kill}");
        let url = victim.url().expect("it lives");
        let mut sent = JoinSet::new();
        sent.spawn(order(http.clone(), url, key.clone(), WORK));
        pause(random.between(0, 50)).await;
        victim.kill();
        // What it has sent to Redis before is on its way.
        pause(10).await;
        let left = left(&redis, &known);
        let retry = order(http.clone(), home.clone(), key.clone(), WORK);
        if matches!(left, Left::Nothing) {
            let answer = retry.await.expect("an answer");
            assert!(!answer.replay, "{key}: of what?");
        } else {
            retries.spawn(retry);
        }
        // One whose lease is over comes back with its retry.
        known.extend(keys(&redis));
        kills.push((key, left));
        victim.restart();
    }
    for answer in retries.join_all().await {
        answer.expect("every key is free again");
    }
    assert_eq!(everlasting(&redis), 0, "keys without an expiry");

    let rows = rows(&http, &home).await;
    let mut claims = 0;
    for (key, left) in &kills {
        let rows = of(&rows, key);
        let here: Vec<_> = rows
            .iter()
            .filter(|row| home.ends_with(&row.copy))
            .collect();
        let runs = (here.len(), rows.len() - here.len());
        match left {
            Left::Nothing => assert_eq!(runs, (1, 0), "{key}: {rows:?}"),
            Left::Record => assert_eq!(runs, (0, 1), "{key}: {rows:?}"),
            Left::Claim(earliest, latest) => {
                claims += 1;
                assert_eq!(here.len(), 1, "{key}: {rows:?}");
                let started = here[0].created_ms - WORK;
                assert!(
                    (earliest - 5..latest + 2000).contains(&started),
                    "{key}: run at {started}, its claim stood until {earliest} to {latest}"
                );
            }
        }
    }
    assert!(claims > 20, "only {claims} kills met a handler at work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_died_holds_its_key_for_the_lease_not_for_the_retention() {
    let _machine = crate::MACHINE.lock().await;
    let (redis, dir, http) = (RedisServer::start(), directory(), client());
    let copy = Copy::start(&redis, dir.path(), "copy", &["--lease", "2s"]);
    let send = || {
        order(
            http.clone(),
            copy.url().expect("it lives"),
            "k".into(),
            3000,
        )
    };
    let start = now();
    tokio::select! {
        answer = send() => panic!("answered too early: {answer:?}"),
        () = pause(300) => copy.kill(),
    }
    copy.restart();
    let (one, two) = tokio::join!(
        async {
            pause(700).await;
            send().await.expect("an answer")
        },
        async {
            pause(2700).await;
            send().await.expect("an answer")
        },
    );
    assert!(!one.replay && two.replay, "{one:?} {two:?}");
    assert_eq!(one.body, two.body);
    let rows = rows(&http, &copy.url().expect("it lives")).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    // The claim was made after the start, and before the kill; the handler works 3 s.
    let run = rows[0].created_ms - start;
    assert!((5000..6000).contains(&run), "its row came after {run} ms");
    for answer in [one, two] {
        assert!(answer.at < start + 6500, "{answer:?}");
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn client() -> Client {
    let client = Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(30));
    client.build().expect("a client")
}
