//! The proxy that tests put between clients and servers does what it says.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use idempotent_tests::proxy::{Proxy, Then};

const A_WHILE: Duration = Duration::from_millis(100);

/// A server that sends back what it gets, and counts it.
fn echo() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let received = Arc::new(AtomicUsize::new(0));
    let total = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, received) = (stream.expect("a client"), Arc::clone(&received));
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    received.fetch_add(read, Relaxed);
                    if stream.write_all(&buffer[..read]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, total)
}

struct Client(TcpStream);

#[derive(Debug, PartialEq)]
enum Answer {
    Said(String),
    Closed,
    Silence,
}

impl Client {
    fn of(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.address()).expect("a connection");
        stream.set_read_timeout(Some(A_WHILE)).expect("a timeout");
        Self(stream)
    }

    fn say(&mut self, text: &str) -> Answer {
        // A connection that was closed may say so now or at the read.
        drop(self.0.write_all(text.as_bytes()));
        self.hear()
    }

    fn hear(&mut self) -> Answer {
        let mut buffer = [0; 1024];
        match self.0.read(&mut buffer) {
            Ok(read @ 1..) => {
                Answer::Said(String::from_utf8(buffer[..read].to_vec()).expect("UTF-8"))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Answer::Silence,
            Ok(_) | Err(_) => Answer::Closed,
        }
    }
}

fn said(text: &str) -> Answer {
    Answer::Said(text.to_owned())
}

#[test]
fn it_passes_everything_on_and_counts_round_trips() {
    let (server, received) = echo();
    let proxy = Proxy::to(server);
    let (mut one, mut two) = (Client::of(&proxy), Client::of(&proxy));
    for _ in 0..5 {
        assert_eq!(one.say("tea"), said("tea"));
        assert_eq!(two.say("coffee"), said("coffee"));
    }
    assert_eq!(proxy.round_trips(), 10);
    assert_eq!(proxy.connections(), 2);
    assert_eq!(received.load(Relaxed), 45);
}

#[test]
fn a_cut_closes_and_refuses_until_it_heals() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.say("a"), said("a"));
    proxy.cut();
    assert_eq!(client.say("b"), Answer::Closed);
    let refused = TcpStream::connect(proxy.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.pass();
    assert_eq!(
        client.say("c"),
        Answer::Closed,
        "a closed connection stays closed"
    );
    assert_eq!(Client::of(&proxy).say("d"), said("d"));
}

#[test]
fn what_is_stalled_arrives_once_it_flows_again() {
    let (server, received) = echo();
    let proxy = Proxy::to(server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.say("a"), said("a"));
    proxy.stall();
    let mut new = Client::of(&proxy);
    assert_eq!(client.say("b"), Answer::Silence);
    assert_eq!(new.say("c"), Answer::Silence);
    assert_eq!(received.load(Relaxed), 1);
    proxy.pass();
    assert_eq!(client.hear(), said("b"));
    assert_eq!(new.hear(), said("c"));
}

#[test]
fn stranded_connections_stay_silent_while_new_ones_work() {
    let (server, received) = echo();
    let proxy = Proxy::to(server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.say("a"), said("a"));
    proxy.strand();
    assert_eq!(client.say("b"), Answer::Silence);
    assert_eq!(Client::of(&proxy).say("c"), said("c"));
    proxy.pass();
    assert_eq!(client.say("d"), Answer::Silence);
    assert_eq!(received.load(Relaxed), 2);
}

#[test]
fn a_lost_reply_leaves_the_request_with_the_server() {
    for then in [Then::Close, Then::Hang] {
        let silence = match then {
            Then::Close => Answer::Closed,
            Then::Hang => Answer::Silence,
        };
        let (server, received) = echo();
        let proxy = Proxy::to(server);
        let (mut one, mut two) = (Client::of(&proxy), Client::of(&proxy));
        proxy.lose_replies(1, then);
        assert_eq!(one.say("a"), silence, "{then:?}");
        assert_eq!(received.load(Relaxed), 1, "{then:?}");
        assert_eq!(two.say("b"), said("b"), "only one was to be lost");
        assert_eq!(one.say("c"), silence, "it carries no later reply");

        proxy.lose_reply_to(b"EVAL", then);
        assert_eq!(two.say("GET"), said("GET"));
        assert_eq!(two.say("an EVALSHA"), silence);
        assert_eq!(Client::of(&proxy).say("EVAL"), said("EVAL"));

        proxy.lose_replies(usize::MAX, then);
        for _ in 0..3 {
            assert_eq!(Client::of(&proxy).say("d"), silence);
        }
        proxy.pass();
        assert_eq!(Client::of(&proxy).say("e"), said("e"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_real_time_even_where_the_clock_is_paused() {
    let (server, received) = echo();
    let proxy = Proxy::to(server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.say("a"), said("a"));
    proxy.delay(A_WHILE + A_WHILE / 2);
    assert_eq!(client.say("b"), Answer::Silence);
    assert_eq!(client.hear(), said("b"));
    proxy.pass();
    assert_eq!(client.say("c"), said("c"));
    assert_eq!(received.load(Relaxed), 3);
}

#[test]
fn dropped_it_takes_its_connections_along() {
    let (server, _) = echo();
    let proxy = Proxy::to(server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.say("a"), said("a"));
    let address = proxy.address();
    drop(proxy);
    assert_eq!(client.say("b"), Answer::Closed);
    assert!(TcpStream::connect(address).is_err());
}
