//! What a newcomer sees first: 50 duplicates of one request over HTTP, and three lines to try.

use std::net::SocketAddr;

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const DUPLICATES: usize = 50;

/// Prints where to call, once the burst is over.
pub(crate) async fn welcome(address: SocketAddr, demo: bool) {
    let shop = format!("http://{address}");
    println!("Listening on {shop}");
    if demo {
        match burst(&shop).await {
            Ok(outcome) => println!("{outcome}"),
            Err(error) => println!("The {DUPLICATES} duplicates could not be sent: {error}"),
        }
    }
    let create = format!(
        r#"curl -i {shop}/orders -H 'Idempotency-Key: "order-1"' -H 'Content-Type: application/json' -d '{{"item":"tea","quantity":2}}'"#
    );
    println!(
        "\nTry an order, then the same again (X-Idempotent-Replay: true), then the list:\n\n{create}\n{create}\ncurl {shop}/orders\n"
    );
}

/// Sends one order many times at once, and says what became of it.
async fn burst(shop: &str) -> Result<String, reqwest::Error> {
    // A proxy of the environment is not asked for this machine.
    let client = Client::builder().no_proxy().build()?;
    let mut sent = JoinSet::new();
    for _ in 0..DUPLICATES {
        let request = client
            .post(format!("{shop}/orders"))
            .header("Idempotency-Key", "\"demo\"")
            .json(&json!({ "item": "coffee", "quantity": 1, "delay_ms": 200 }));
        sent.spawn(request.send());
    }
    let (mut executed, mut replayed, mut refused) = (0, 0, 0);
    while let Some(Ok(response)) = sent.join_next().await {
        match response? {
            response if response.status() != StatusCode::CREATED => refused += 1,
            response if is_replay(&response) => replayed += 1,
            _ => executed += 1,
        }
    }
    let orders: Vec<Value> = client
        .get(format!("{shop}/orders"))
        .send()
        .await?
        .json()
        .await?;
    Ok(format!(
        "Sent one POST /orders {DUPLICATES} times at once, with one Idempotency-Key:\n  {executed} executed, {replayed} replayed, {refused} refused; rows in GET /orders: {}",
        orders.len()
    ))
}

fn is_replay(response: &Response) -> bool {
    response.headers().contains_key("x-idempotent-replay")
}
