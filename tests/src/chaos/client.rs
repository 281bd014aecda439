//! A client that retries like a real one: it gives up too early, hangs up in the middle, asks another
//! copy with the same key, and now and then sends twice at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    history::{Attempt, Ms, Order, Outcome},
    random::Random,
    time::{now, pause},
    world::World,
};

/// The longest that a client goes on trying.
const PERSISTENCE: Ms = 60_000;
/// How long it waits for an answer where it does not give up at once: less than a copy may stand
/// still, so that it asks another one meanwhile.
const PATIENCE: Ms = 900;

pub(super) struct Client {
    world: Arc<World>,
    random: Random,
    number: usize,
    /// The keys that it has used.
    keys: Vec<String>,
}

impl Client {
    pub(super) fn new(world: Arc<World>, random: Random, number: usize) -> Self {
        Self {
            world,
            random,
            number,
            keys: Vec::new(),
        }
    }

    /// Orders one thing after the other until it is told to stop; what it has begun it ends.
    pub(super) async fn run(mut self, stop: Arc<AtomicBool>) {
        while !stop.load(Relaxed) {
            let again = !self.keys.is_empty() && self.random.percent(8);
            let key = if again {
                let at = self.random.below(self.keys.len());
                self.keys[at].clone()
            } else {
                self.order()
            };
            let mut other = self.pursuit();
            let mut first = self.pursuit();
            if self.random.percent(10) {
                tokio::join!(first.until_answered(&key), other.until_answered(&key));
            } else {
                first.until_answered(&key).await;
            }
            pause(self.random.between(10, 80)).await;
        }
    }

    /// A new order; its key.
    fn order(&mut self) -> String {
        let key = format!("{}-{}-{}", self.world.name, self.number, self.keys.len());
        let random = &mut self.random;
        let delay_ms = match random.between(0, 99) {
            0..60 => random.between(0, 20),
            60..90 => random.between(20, 100),
            90..97 => random.between(100, 600),
            // Longer than the lease.
            _ => random.between(1100, 1800),
        };
        let order = Order {
            quantity: random.between(1, 1000),
            delay_ms,
            fail_times: u64::from(random.percent(3)),
        };
        self.world.history.begin(&key, order);
        self.keys.push(key.clone());
        key
    }

    fn pursuit(&mut self) -> Pursuit {
        let copy = self.random.below(self.world.copies.len());
        Pursuit {
            world: Arc::clone(&self.world),
            random: self.random.fork(),
            copy,
        }
    }
}

/// The attempts of one client at one key, one after the other.
struct Pursuit {
    world: Arc<World>,
    random: Random,
    copy: usize,
}

impl Pursuit {
    async fn until_answered(&mut self, key: &str) {
        let start = now();
        while now() < start + PERSISTENCE {
            let attempt = self.attempt(key).await;
            let done = matches!(attempt.outcome, Outcome::Created { .. } | Outcome::Wrong(_));
            self.world.history.attempt(key, attempt);
            if done {
                return;
            }
            pause(self.random.between(20, 150)).await;
            if self.random.percent(70) {
                self.copy = self.random.below(self.world.copies.len());
            }
        }
    }

    async fn attempt(&mut self, key: &str) -> Attempt {
        let patience = if self.random.percent(20) {
            self.random.between(1, 100)
        } else {
            PATIENCE
        };
        send(&self.world, self.copy, key, patience).await
    }
}

/// Sends the order of a key to a copy, once.
pub(super) async fn send(world: &World, copy: usize, key: &str, patience: Ms) -> Attempt {
    let from = now();
    let outcome = match world.copies[copy].url() {
        Some(url) => ask(world, &url, key, patience).await,
        None => Outcome::NoAnswer("it is dead"),
    };
    Attempt {
        copy,
        from,
        until: now(),
        outcome,
    }
}

async fn ask(world: &World, url: &str, key: &str, patience: Ms) -> Outcome {
    let order = world.history.order(key);
    let request = world
        .http
        .post(format!("{url}/orders"))
        .header("Idempotency-Key", format!("\"{key}\""))
        .timeout(Duration::from_millis(patience))
        .json(&json!({
            "item": key,
            "quantity": order.quantity,
            "delay_ms": order.delay_ms,
            "fail_times": order.fail_times,
        }));
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_timeout() => return Outcome::NoAnswer("the client gave up"),
        Err(_) => return Outcome::NoAnswer("the connection failed"),
    };
    let status = response.status().as_u16();
    let replayed = response.headers().contains_key("x-idempotent-replay");
    let Ok(body) = response.text().await else {
        return Outcome::NoAnswer("the answer broke off");
    };
    let problem: Value = serde_json::from_str(&body).unwrap_or_default();
    let kind = problem["type"].as_str().unwrap_or("no type").to_owned();
    match status {
        201 => Outcome::Created { replayed, body },
        409 if kind.ends_with(":in-flight") => Outcome::Refused(format!("409 {kind}")),
        503 => Outcome::Refused(format!("503 {kind}")),
        _ => Outcome::Wrong(format!("{status} {body}")),
    }
}
