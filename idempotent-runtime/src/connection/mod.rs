//! Connections to Redis that come back by themselves, for all that speak to it.
//!
//! One multiplexed connection a process is opened when it is first wanted, and a fresh one in its
//! place when it breaks or a [probe](Connection::probe) asks for it. Nothing is sent twice in
//! here, but for what a cluster has redirected, and what is [repeatable](Connection::repeatable).
//! Before a fresh connection is used, the server is asked to close the old one, so that no command
//! that was given up on it is carried out after a later one.

mod script;

mod server;

mod sentinel;

mod handshake;

mod open;

mod link;

mod fault;

mod namespace;

mod lifetime;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::watch;

pub(crate) use self::{
    fault::{Fault, Opening},
    lifetime::millis,
    link::Link,
    namespace::Namespace,
    script::{Answer, By, Script},
    server::Server,
};
use crate::error::{Error, ErrorKind, StoreError};

/// A way to a server that always leads to the latest connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    repeatable: bool,
}

struct Shared {
    server: Server,
    state: Mutex<State>,
    /// Whether the server has been found to be one that can be used.
    checked: AtomicBool,
    /// Whether it has been complained of since it could be used.
    complained: AtomicBool,
    opened: AtomicU64,
}

#[derive(Default)]
struct State {
    open: Option<Arc<Open>>,
    /// Answered by the task that opens a fresh connection, for all who want it.
    opening: Option<watch::Receiver<Option<Opened>>>,
}

type Opened = Result<Arc<Open>, Opening>;

/// A connection that has been opened, and what the server calls it.
struct Open {
    link: Link,
    peers: Vec<link::Peer>,
    broken: AtomicBool,
}

impl Connection {
    /// A way to this server; nothing is opened yet.
    pub(crate) fn new(server: Server) -> Self {
        let shared = Shared {
            server,
            state: Mutex::default(),
            checked: AtomicBool::new(false),
            complained: AtomicBool::new(false),
            opened: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
            repeatable: false,
        }
    }

    /// For commands that may as well be carried out twice: one whose connection turns out to be
    /// gone is sent once more, on a fresh one. A connection that was idle when it broke says so
    /// only to the next command.
    pub(crate) fn repeatable(self) -> Self {
        Self {
            repeatable: true,
            ..self
        }
    }

    /// Opens it, if the server can be reached. One that cannot is an error of the commands that
    /// are sent meanwhile; one that can be reached but not used is an error here.
    pub(crate) async fn connect(&self) -> Result<(), Error> {
        // Who starts the service hears it from here.
        self.shared.complained.store(true, Ordering::Relaxed);
        match self.open().await {
            Ok(_) => Ok(()),
            Err(Opening::Unreachable(why)) => {
                self.shared.complained.store(false, Ordering::Relaxed);
                tracing::warn!(
                    "{} cannot be reached, so the service starts without it: {why}",
                    self.shared.server
                );
                Ok(())
            }
            Err(Opening::Unusable(why)) => Err(Error::new(
                ErrorKind::Store,
                format!("{} cannot be used: {why}", self.shared.server),
            )),
        }
    }

    /// The server it leads to.
    pub(crate) fn server(&self) -> &Server {
        &self.shared.server
    }

    /// How many connections have been opened so far: another number, another connection.
    pub(crate) fn opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        match self.send_once(command).await {
            // On the heap, since it hardly ever happens.
            Err(fault) if self.repeatable && fault.breaks() => {
                Box::pin(self.send_once(command)).await
            }
            answer => answer,
        }
    }

    async fn send_once(&self, command: &Cmd) -> Result<Value, Fault> {
        let open = self.open().await?;
        let mut link = open.link.clone();
        let reply: RedisResult<Value> = command.query_async(&mut link).await;
        reply.map_err(|error| open.blame(error))
    }

    /// Sends commands at once, and waits for the reply to each.
    pub(crate) async fn send_all(
        &self,
        mut commands: Pipeline,
    ) -> Result<Vec<RedisResult<Value>>, Fault> {
        commands.ignore_errors();
        match self.send_all_once(&commands).await {
            Err(fault) if self.repeatable && fault.breaks() => {
                Box::pin(self.send_all_once(&commands)).await
            }
            answer => answer,
        }
    }

    async fn send_all_once(&self, commands: &Pipeline) -> Result<Vec<RedisResult<Value>>, Fault> {
        let open = self.open().await?;
        let mut link = open.link.clone();
        let replies: RedisResult<Vec<_>> = commands.query_async(&mut link).await;
        let replies: Vec<RedisResult<Value>> = replies.map_err(|error| open.blame(error))?;
        for reply in &replies {
            if let Err(error) = reply
                && let fault = open.blame(error.clone())
                && fault.breaks()
            {
                return Err(fault);
            }
        }
        Ok(replies)
    }

    /// Whether the server can be used, found out over a fresh connection, which takes the place of
    /// the one before. Probes at the same time are one.
    pub(crate) async fn probe(&self) -> Result<(), StoreError> {
        let opening = {
            let mut state = self.shared.state.lock();
            self.opening(&mut state)
        };
        match answer(opening).await {
            Ok(_) => Ok(()),
            Err(opening) => Err(Fault::from(opening).into_error("a probe")),
        }
    }

    /// The latest connection, opened if there is none.
    async fn open(&self) -> Opened {
        let opening = {
            let mut state = self.shared.state.lock();
            match &state.open {
                Some(open) if !open.broken.load(Ordering::Relaxed) => return Ok(Arc::clone(open)),
                Some(_) | None => self.opening(&mut state),
            }
        };
        // On the heap, since it hardly ever happens.
        Box::pin(answer(opening)).await
    }

    /// The fresh connection that is being opened; begins with it if none is.
    #[expect(
        clippy::disallowed_methods,
        reason = "owned by those who wait for the connection; it ends by itself within its time"
    )]
    fn opening(&self, state: &mut State) -> watch::Receiver<Option<Opened>> {
        // Its task may have ended with the Tokio runtime that it ran on.
        if let Some(opening) = &state.opening
            && opening.has_changed().is_ok()
        {
            return opening.clone();
        }
        let (answer, opening) = watch::channel(None);
        state.opening = Some(opening.clone());
        // A task, because whoever wanted the connection may give up before it is there.
        let shared = Arc::clone(&self.shared);
        let before = state.open.clone();
        tokio::spawn(async move {
            let opened = shared.open(before.as_deref()).await;
            let mut state = shared.state.lock();
            state.opening = None;
            if let Ok(open) = &opened {
                shared.opened.fetch_add(1, Ordering::Relaxed);
                state.open = Some(Arc::clone(open));
            }
            drop(state);
            answer.send_replace(Some(opened));
        });
        opening
    }
}

async fn answer(mut opening: watch::Receiver<Option<Opened>>) -> Opened {
    match opening.wait_for(Option::is_some).await {
        Ok(opened) => opened.clone().unwrap_or_else(|| Err(Opening::given_up())),
        Err(_) => Err(Opening::given_up()),
    }
}

impl Shared {
    async fn open(&self, before: Option<&Open>) -> Opened {
        let opened = self.try_open(before).await;
        match &opened {
            Ok(_) => {
                self.checked.store(true, Ordering::Relaxed);
                self.complained.store(false, Ordering::Relaxed);
            }
            Err(opening) => self.complain(opening),
        }
        opened
    }

    async fn try_open(&self, before: Option<&Open>) -> Opened {
        let link = self.server.open().await?;
        let before = before.map(|open| &*open.peers).unwrap_or_default();
        let check = !self.checked.load(Ordering::Relaxed);
        let (link, peers) = handshake::greet(&self.server, link, before, check).await?;
        Ok(Arc::new(Open {
            link,
            peers,
            broken: AtomicBool::new(false),
        }))
    }

    /// Says once that a server which can be reached is of no use, such as with another password.
    fn complain(&self, opening: &Opening) {
        if let Opening::Unusable(why) = opening
            && !self.complained.swap(true, Ordering::Relaxed)
        {
            tracing::error!("{} can be reached, but cannot be used: {why}", self.server);
        }
    }
}

impl Open {
    /// Notes that the connection must be replaced before the next command, where an error says so.
    fn blame(&self, error: redis::RedisError) -> Fault {
        let fault = Fault::from(error);
        // A cluster connects to a node again by itself, and the other nodes are well.
        let whole = !matches!(self.link, Link::Cluster(_));
        if whole && fault.breaks() {
            self.broken.store(true, Ordering::Relaxed);
        }
        fault
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection")
            .field(&format_args!("{}", self.shared.server))
            .finish()
    }
}
