//! The example `storm`, from end to end: duplicates fired at running copies of `orders`.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{net::TcpListener, process::Output, thread};

use idempotent_tests::{
    example::{Shop, run},
    redis::RedisServer,
};

/// Whether it found everything right, and what it printed.
fn storm(args: &[&str]) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = run("storm", args);
    let mut printed = String::from_utf8(stdout).expect("UTF-8");
    printed.push_str(&String::from_utf8(stderr).expect("UTF-8"));
    (status.success(), printed)
}

#[test]
fn duplicates_at_one_copy_make_one_order_each() {
    let shop = Shop::start();
    let few = ["--keys", "30", "--duplicates", "8"];
    let (right, printed) = storm(&[&["--url", shop.url()], &few[..]].concat());
    assert!(right, "{printed}");
    for part in [
        "240 sent: 30 executed, 210 replayed, 0 failed; slowest",
        "rows in GET /orders: 30",
        "Every order was created once, and every key has one answer.",
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
    // Another run has keys of its own.
    let (right, printed) = storm(&[&["--url", shop.url()], &few[..]].concat());
    assert!(right, "{printed}");
    assert!(printed.contains("30 executed"), "{printed}");
}

#[test]
fn copies_that_share_no_store_are_found_out() {
    let (one, two) = (Shop::start(), Shop::start());
    let urls = ["--url", one.url(), "--url", two.url()];
    let (right, printed) = storm(&[&urls[..], &["--keys", "5", "--duplicates", "4"]].concat());
    assert!(!right, "{printed}");
    for part in [
        "20 sent: 10 executed, 10 replayed, 0 failed",
        "rows in GET /orders: 10",
        "CREATED MORE THAN ONCE: 5 keys",
        "Do all copies run, and share one store",
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
}

#[test]
fn replicas_over_one_redis_make_one_order_each_though_one_of_them_dies() {
    let redis = RedisServer::start();
    let args = ["--store", &redis.url(), "--lease", "2s"];
    let (one, two) = (Shop::with(&args), Shop::with(&args));
    let urls = ["--url", one.url(), "--url", two.url()];
    let few = ["--keys", "40", "--duplicates", "10"];
    let (right, printed) = storm(&[&urls[..], &few].concat());
    assert!(right, "{printed}");
    for part in [
        "400 sent: 40 executed, 360 replayed, 0 failed",
        "rows in GET /orders: 40\n",
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }

    let many = [
        &urls[..],
        &["--keys", "200", "--duplicates", "10", "--work-ms", "100"],
    ]
    .concat();
    let (right, printed) = thread::scope(|scope| {
        let storm = scope.spawn(|| storm(&many));
        // Some orders have been made, and most are still to come.
        while redis.cli(&["DBSIZE"]).parse::<u32>().unwrap() < 60 {}
        two.signal("KILL");
        storm.join().unwrap()
    });
    assert!(right, "{printed}");
    for part in [
        "2000 sent: ",
        "0 failed",
        &format!("without those of {}, which does not answer", two.url()),
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
}

#[test]
fn a_copy_that_is_down_is_explained() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (right, printed) = storm(&["--url", &format!("http://{address}")]);
    assert!(!right, "{printed}");
    let advice = format!(
        "http://{address} does not answer: start it with `cargo run --release --features redis --example orders -- --listen {address}"
    );
    assert!(printed.contains(&advice), "{printed}");
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    for (args, complaint) in [
        (
            &["--keys", "0"][..],
            "`--keys` is a number from 1 to 1000000, not `0`",
        ),
        (&["--keys"], "`--keys` needs a value"),
        (&["--url", "localhost"], "`localhost` is no URL"),
        (&["--keyz", "1"], "unknown argument `--keyz`"),
    ] {
        let (right, printed) = storm(args);
        assert!(!right, "{printed}");
        assert!(printed.contains(complaint), "{printed}");
        assert!(printed.contains("Usage: storm"), "{printed}");
    }
}
