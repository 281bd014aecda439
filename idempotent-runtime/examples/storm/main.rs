//! Fires duplicates at running copies of the example `orders`, as clients do that get no answer in
//! time, and tells whether any order was created twice:
//! `cargo run --release --example storm -- --url http://127.0.0.1:3000 --url http://127.0.0.1:3001`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to its user"
)]

mod args;
mod client;
mod shop;
mod tally;

use std::{process::ExitCode, sync::Arc};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{args::Args, client::Client, shop::Shop, tally::Tally};

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(mistake) => {
            eprintln!("storm: {mistake}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&args).await {
        Ok(tally) => {
            println!("{tally}");
            if tally.is_right() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("storm: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<Tally, String> {
    let shop = Shop::of(args)?;
    shop.check().await?;
    println!(
        "{} orders, each sent {} times at once, to {}",
        args.keys,
        args.duplicates,
        args.urls.join(" and ")
    );
    let tally = fire(args, &shop).await;
    Ok(tally.with_rows(shop.rows().await))
}

/// Sends all duplicates of a key at once, and so many keys at a time as `--clients` says.
async fn fire(args: &Args, shop: &Shop) -> Tally {
    let bar = ProgressBar::new(args.keys * args.duplicates);
    // The template is a constant; where it were wrong, the bar would have its default look.
    if let Ok(style) = ProgressStyle::with_template("[{bar:40}] {pos}/{len} answered, {eta} left") {
        bar.set_style(style.progress_chars("## "));
    }
    let places = Arc::new(Semaphore::new(args.clients));
    let mut sent = JoinSet::new();
    for number in 0..args.keys * args.duplicates {
        let client = Client::new(shop.clone(), number / args.duplicates, number);
        let (places, bar) = (Arc::clone(&places), bar.clone());
        sent.spawn(async move {
            // Never closed.
            let place = places.acquire().await;
            let answer = client.order().await;
            drop(place);
            bar.inc(1);
            answer
        });
    }
    let mut tally = Tally::default();
    while let Some(answer) = sent.join_next().await {
        tally.count(answer.ok());
    }
    bar.finish_and_clear();
    tally
}
