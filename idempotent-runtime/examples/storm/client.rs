//! One client: it sends its request until it has an answer, always with the same key.

use std::time::Duration;

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::shop::Shop;

/// How long a client tries: twice the lease that a copy may leave behind when it dies.
const PATIENCE: Duration = Duration::from_mins(1);
/// The first pause between two attempts, doubled each time up to the longest.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Client {
    shop: Shop,
    key: String,
    item: String,
    /// Which copy is asked first.
    first: u64,
}

/// What became of a client's request.
pub(crate) struct Answer {
    pub(crate) key: String,
    /// The last answer; `Err` where no copy gave a final one in time.
    pub(crate) outcome: Result<Success, String>,
    pub(crate) took: Duration,
    /// Attempts that were answered with 409 because the first still ran.
    pub(crate) conflicts: u64,
    /// Attempts that failed otherwise: no connection, no answer, 503.
    pub(crate) troubles: u64,
}

pub(crate) struct Success {
    pub(crate) replayed: bool,
    pub(crate) body: String,
}

/// What an attempt says.
enum Attempt {
    Final(Result<Success, String>),
    Conflict,
    Trouble(String),
}

impl Client {
    /// For the order of this number, asking the copy `first` first.
    pub(crate) fn new(shop: Shop, order: u64, first: u64) -> Self {
        Self {
            key: shop.key(order),
            item: format!("tea {order}"),
            shop,
            first,
        }
    }

    pub(crate) async fn order(self) -> Answer {
        let start = Instant::now();
        let (mut conflicts, mut troubles) = (0, 0);
        let mut pause = PAUSE;
        let outcome = loop {
            // Each attempt goes to the next copy, as behind a load balancer.
            let problem = match self.attempt(conflicts + troubles).await {
                Attempt::Final(outcome) => break outcome,
                Attempt::Conflict => {
                    conflicts += 1;
                    "the first request still runs".to_owned()
                }
                Attempt::Trouble(problem) => {
                    troubles += 1;
                    problem
                }
            };
            if start.elapsed() > PATIENCE {
                break Err(problem);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        Answer {
            key: self.key,
            outcome,
            took: start.elapsed(),
            conflicts,
            troubles,
        }
    }

    async fn attempt(&self, number: u64) -> Attempt {
        let turn = usize::try_from(self.first + number).unwrap_or_default();
        let mut copies = self.shop.urls.iter().cycle();
        let Some(url) = copies.nth(turn % self.shop.urls.len()) else {
            return Attempt::Final(Err("there is no copy".to_owned()));
        };
        let request = self
            .shop
            .http
            .post(format!("{url}/orders"))
            .header("Idempotency-Key", format!("\"{}\"", self.key))
            .json(&json!({
                "item": self.item, "quantity": 1, "delay_ms": self.shop.work_ms,
            }));
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => Attempt::Trouble(error.to_string()),
        }
    }
}

/// Tells an answer from a reason to come again.
async fn read(response: Response) -> Attempt {
    let status = response.status();
    let replayed = response.headers().contains_key("x-idempotent-replay");
    let Ok(body) = response.text().await else {
        return Attempt::Trouble("the answer broke off".to_owned());
    };
    match status {
        StatusCode::CREATED => Attempt::Final(Ok(Success { replayed, body })),
        StatusCode::CONFLICT if is_in_flight(&body) => Attempt::Conflict,
        StatusCode::SERVICE_UNAVAILABLE => Attempt::Trouble(format!("{status}: {body}")),
        _ => Attempt::Final(Err(format!("{status}: {body}"))),
    }
}

/// Whether a problem says that the first request still runs; no other 409 is worth a retry.
fn is_in_flight(problem: &str) -> bool {
    let problem: Value = serde_json::from_str(problem).unwrap_or_default();
    problem
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("in-flight"))
}
