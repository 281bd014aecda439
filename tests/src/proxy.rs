//! A TCP proxy whose network the tests control: slow, cut, silent, or losing replies.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc as tokio_mpsc, watch},
    task::JoinSet,
};

/// Stands between clients and one server, on a free port of its own. Passes everything on until it
/// is told otherwise, and ends when dropped.
///
/// It has a thread and a clock of its own: usable from tests with and without a runtime, and where
/// time is paused. Each change is in effect when its method returns.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: tokio_mpsc::UnboundedSender<Order>,
    turns: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// What becomes of a connection whose reply was lost. It never carries another one, since no
/// network loses the middle of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Closed: the client learns that the outcome is unknown.
    Close,
    /// Open and silent: the client waits for as long as it likes.
    Hang,
}

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fair,
    /// Each flush of a client arrives this much later.
    Slow(Duration),
    /// Nothing arrives for now.
    Stalled,
    Cut,
}

/// Which replies are lost.
#[derive(Debug, Clone)]
enum Loss {
    /// The next so many, on whichever connection.
    Next(usize),
    /// The reply to the next request that holds these bytes.
    To(Vec<u8>),
}

#[derive(Debug, Clone)]
struct Rules {
    weather: Weather,
    /// Connections up to this number carry nothing any more.
    stranded: usize,
    loss: Option<(Loss, Then)>,
}

/// A change of the rules, and whom to tell that it is in effect.
struct Order {
    change: Box<dyn FnOnce(&mut Rules) + Send>,
    done: mpsc::Sender<()>,
}

impl Proxy {
    /// One in front of this server, which need not listen yet.
    ///
    /// # Panics
    ///
    /// Where no port is free.
    #[must_use]
    pub fn to(server: SocketAddr) -> Self {
        let (orders, received) = tokio_mpsc::unbounded_channel();
        let (ready, address) = mpsc::channel();
        let turns = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let (rules, _) = watch::channel(Rules {
            weather: Weather::Fair,
            stranded: 0,
            loss: None,
        });
        let line = Line {
            number: 0,
            rules: Arc::new(rules),
            server,
            opened: Arc::clone(&connections),
            turns: Arc::clone(&turns),
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let port = Port::reserve();
                let listener = port.listen();
                ready.send(port.address).expect("the test waits");
                serve(&port, listener, &line, received).await;
            });
        });
        Self {
            address: address.recv().expect("a free port"),
            orders,
            turns,
            connections,
            thread: Some(thread),
        }
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Heals the network: new connections are taken, bytes that were held go on. What is
    /// [stranded](Self::strand) or has lost a reply stays as it is.
    pub fn pass(&self) {
        self.tell(|rules| {
            rules.weather = Weather::Fair;
            rules.loss = None;
        });
    }

    /// Each flush of a client reaches the server this much later, until [`pass`](Self::pass).
    pub fn delay(&self, by: Duration) {
        self.tell(move |rules| rules.weather = Weather::Slow(by));
    }

    /// Closes all connections and refuses new ones, until [`pass`](Self::pass).
    pub fn cut(&self) {
        self.tell(|rules| rules.weather = Weather::Cut);
    }

    /// Connections stay open and new ones are taken, but nothing flows, in either direction, until
    /// [`pass`](Self::pass); then what was held arrives.
    pub fn stall(&self) {
        self.tell(|rules| rules.weather = Weather::Stalled);
    }

    /// The connections of this moment stay open and never carry anything again; new ones work, or
    /// do as [`stall`](Self::stall) has said.
    pub fn strand(&self) {
        let opened = Arc::clone(&self.connections);
        self.tell(move |rules| rules.stranded = opened.load(Relaxed));
    }

    /// Requests reach the server, and the next `count` replies are lost, on whichever connections;
    /// `usize::MAX` for all until [`pass`](Self::pass).
    pub fn lose_replies(&self, count: usize, then: Then) {
        self.tell(move |rules| rules.loss = Some((Loss::Next(count), then)));
    }

    /// The next flush of a client that holds these bytes reaches the server, and its reply is lost.
    pub fn lose_reply_to(&self, request: &[u8], then: Then) {
        let request = request.to_vec();
        self.tell(move |rules| rules.loss = Some((Loss::To(request), then)));
    }

    /// How many times a client has spoken after the server had: the round trips of a client that
    /// waits for each answer; fewer than the commands where they share a flush.
    #[must_use]
    pub fn round_trips(&self) -> usize {
        self.turns.load(Relaxed)
    }

    /// How many connections it has taken.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    fn tell(&self, change: impl FnOnce(&mut Rules) + Send + 'static) {
        let (done, waiting) = mpsc::channel();
        let change = Box::new(change);
        let told = self.orders.send(Order { change, done });
        assert!(told.is_ok(), "the proxy has died");
        waiting.recv().expect("the proxy obeys");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let (closed, _) = tokio_mpsc::unbounded_channel();
        self.orders = closed;
        // It has printed why, where it has panicked.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// A port that stays this proxy's own while nobody listens on it.
struct Port {
    address: SocketAddr,
    /// Bound, never listening: a connection to it is refused.
    _reservation: TcpSocket,
}

impl Port {
    fn reserve() -> Self {
        let socket = Self::bound((Ipv4Addr::LOCALHOST, 0).into());
        Self {
            address: socket.local_addr().expect("it is bound"),
            _reservation: socket,
        }
    }

    fn listen(&self) -> TcpListener {
        Self::bound(self.address).listen(1024).expect("it listens")
    }

    fn bound(address: SocketAddr) -> TcpSocket {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option");
        socket.set_reuseport(true).expect("an option");
        socket.bind(address).expect("a free port");
        socket
    }
}

/// Takes connections and orders, until the proxy is dropped.
async fn serve(
    port: &Port,
    listener: TcpListener,
    line: &Line,
    mut orders: tokio_mpsc::UnboundedReceiver<Order>,
) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => {
                let Some(order) = order else { return };
                line.rules.send_modify(order.change);
                if line.rules.borrow().weather == Weather::Cut {
                    listener = None;
                    connections.shutdown().await;
                } else if listener.is_none() {
                    listener = Some(port.listen());
                }
                // A test that has died waits for nothing.
                let _ = order.done.send(());
            }
            accepted = accept(listener.as_ref()) => {
                let number = line.opened.fetch_add(1, Relaxed) + 1;
                connections.spawn(connect(accepted, Line { number, ..line.clone() }));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    match listener {
        Some(listener) => listener.accept().await.expect("a connection").0,
        None => std::future::pending().await,
    }
}

/// Carries one client's connection; closes it where the server takes none.
async fn connect(client: TcpStream, line: Line) {
    let Ok(server) = TcpStream::connect(line.server).await else {
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an option");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Whether the server has spoken last, and whether its replies are lost from now on.
    let talk = watch::Sender::new(Talk {
        servers_turn: true,
        lost: None,
    });
    tokio::select! {
        () = line.replies(from_server, to_client, &talk) => {}
        () = async {
            tokio::join!(line.requests(from_client, to_server, &talk));
            // A client that only stopped sending still gets its answers.
            std::future::pending::<()>().await;
        } => {}
    }
}

/// The state of one connection, shared by its two directions.
#[derive(Debug, Clone, Copy)]
struct Talk {
    servers_turn: bool,
    lost: Option<Then>,
}

/// What a connection needs to know.
#[derive(Debug, Clone)]
struct Line {
    number: usize,
    server: SocketAddr,
    opened: Arc<AtomicUsize>,
    rules: Arc<watch::Sender<Rules>>,
    turns: Arc<AtomicUsize>,
}

impl Line {
    async fn requests(
        &self,
        mut client: OwnedReadHalf,
        mut server: OwnedWriteHalf,
        talk: &watch::Sender<Talk>,
    ) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = client.read(&mut buffer).await.unwrap_or(0);
            self.open().await;
            let weather = self.rules.borrow().weather;
            if let Weather::Slow(by) = weather {
                tokio::time::sleep(by).await;
                self.open().await;
            }
            if read == 0 {
                break;
            }
            let request = &buffer[..read];
            if let Some(then) = self.loses_reply_to(request) {
                talk.send_modify(|talk| talk.lost = Some(then));
            }
            if talk.borrow().servers_turn {
                talk.send_modify(|talk| talk.servers_turn = false);
                self.turns.fetch_add(1, Relaxed);
            }
            if server.write_all(request).await.is_err() {
                break;
            }
        }
        // The server may have gone; the other direction finds out.
        drop(server.shutdown().await);
    }

    async fn replies(
        &self,
        mut server: OwnedReadHalf,
        mut client: OwnedWriteHalf,
        talk: &watch::Sender<Talk>,
    ) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = server.read(&mut buffer).await.unwrap_or(0);
            self.open().await;
            let lost = talk.borrow().lost;
            if read == 0 && lost != Some(Then::Hang) {
                return;
            }
            match lost.or_else(|| self.loses_next()) {
                Some(Then::Close) => return,
                Some(Then::Hang) => std::future::pending().await,
                None => {}
            }
            talk.send_modify(|talk| talk.servers_turn = true);
            if client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }

    /// Waits until bytes may flow on this connection.
    async fn open(&self) {
        let mut rules = self.rules.subscribe();
        let flows =
            |rules: &Rules| rules.stranded < self.number && rules.weather != Weather::Stalled;
        // The rules outlive every connection.
        drop(rules.wait_for(flows).await);
    }

    fn loses_next(&self) -> Option<Then> {
        let mut lost = None;
        self.rules.send_if_modified(|rules| {
            let Some((Loss::Next(left), then)) = &mut rules.loss else {
                return false;
            };
            if let Some(fewer) = left.checked_sub(1) {
                *left = fewer;
                lost = Some(*then);
            }
            false
        });
        lost
    }

    fn loses_reply_to(&self, request: &[u8]) -> Option<Then> {
        let mut lost = None;
        self.rules.send_if_modified(|rules| {
            if let Some((Loss::To(part), then)) = &rules.loss
                && request.windows(part.len()).any(|window| window == part)
            {
                lost = Some(*then);
                rules.loss = None;
            }
            false
        });
        lost
    }
}
