//! Waiters are woken by the server: one connection a process, one look at a key for all who wait
//! for it.
//!
//! `CLIENT TRACKING` (redis.io/docs/latest/develop/reference/client-side-caching) makes the server
//! tell when a key has changed that was read on a connection. Every read of a key on that
//! connection registers it, until it is told once. So what wakes nobody, such as a renewal, is
//! found out by reading the key again, which registers it anew.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use redis::{Pipeline, PushInfo, PushKind, RedisResult, Value, aio::SendError};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        watch,
    },
    time::{self, Instant},
};

use super::value::{self, HOLDER};
use crate::{
    connection::{Connection, Link},
    store::BoxFuture,
};

/// How long the server may take to answer before the connection counts as lost.
const ANSWER: Duration = Duration::from_secs(1);
/// How often the connection is tried while somebody waits and nothing is heard.
const TRIED: Duration = Duration::from_secs(5);
/// How long waiters poll after the connection could not be had.
const REST: Duration = Duration::from_secs(5);
/// How many keys are looked at in one round trip.
const BATCH: usize = 256;

/// All who wait in this process. Clones share them.
#[derive(Clone)]
pub(super) struct Watches {
    connection: Connection,
    shared: Arc<Shared>,
}

type Shared = Mutex<State>;

#[derive(Default)]
struct State {
    waiting: HashMap<Arc<str>, Waiting>,
    /// How the task is told of keys to look at, while it runs.
    task: Option<UnboundedSender<Event>>,
    /// Not before then is the connection wanted again.
    rests_until: Option<Instant>,
    begun: u64,
}

/// The waiters for one key.
struct Waiting {
    /// Ends them when it is dropped.
    ended: watch::Sender<()>,
    count: usize,
    /// Tells it from others at the same key, before and after.
    number: u64,
    /// Who holds the claim that is waited for, once it has been looked at.
    holder: Option<Vec<u8>>,
}

enum Event {
    Look(Arc<str>),
    Push(PushInfo),
}

impl Watches {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            shared: Arc::default(),
        }
    }

    /// A future that ends when the claim at this key has gone; `None` where the server cannot tell,
    /// or cannot be asked to just now.
    pub(super) fn watch(&self, key: String) -> Option<BoxFuture<()>> {
        if !self.connection.server().has_pushes() {
            return None;
        }
        let mut state = self.shared.lock();
        if state
            .rests_until
            .is_some_and(|until| Instant::now() < until)
        {
            return None;
        }
        let task = self.task(&mut state)?;
        let key: Arc<str> = key.into();
        state.begun += 1;
        let number = state.begun;
        let waiting = state.waiting.entry(Arc::clone(&key)).or_insert_with(|| {
            task.send(Event::Look(Arc::clone(&key))).ok();
            Waiting {
                ended: watch::Sender::new(()),
                count: 0,
                number,
                holder: None,
            }
        });
        waiting.count += 1;
        let mut ended = waiting.ended.subscribe();
        let place = Place {
            shared: Arc::downgrade(&self.shared),
            number: waiting.number,
            key,
        };
        Some(Box::pin(async move {
            while ended.changed().await.is_ok() {}
            drop(place);
        }))
    }

    /// The task that hears the server, started if it does not run; `None` outside of Tokio.
    fn task(&self, state: &mut State) -> Option<UnboundedSender<Event>> {
        if let Some(task) = &state.task
            && !task.is_closed()
        {
            return Some(task.clone());
        }
        let runtime = Handle::try_current().ok()?;
        // Those who waited on a task that ended with its Tokio runtime.
        state.waiting.clear();
        let (task, events) = mpsc::unbounded_channel();
        state.task = Some(task.clone());
        let listener = Listener {
            connection: self.connection.clone(),
            shared: Arc::downgrade(&self.shared),
            events,
        };
        let pushes = task.downgrade();
        runtime.spawn(listener.run(move |push| {
            let task = pushes.upgrade().ok_or(SendError)?;
            task.send(Event::Push(push)).map_err(|_| SendError)
        }));
        Some(task)
    }
}

/// One waiter, whose place is free when it is dropped.
struct Place {
    shared: Weak<Shared>,
    key: Arc<str>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut state = shared.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.key)
            && waiting.number == self.number
        {
            waiting.count -= 1;
            if waiting.count == 0 {
                state.waiting.remove(&self.key);
            }
        }
    }
}

/// Hears the server for all who wait, until the connection or the store has gone.
struct Listener {
    connection: Connection,
    shared: Weak<Shared>,
    events: UnboundedReceiver<Event>,
}

/// Why a listener ends.
enum End {
    /// The connection was there, and broke.
    Lost,
    /// It could not be had.
    Refused,
}

impl Listener {
    async fn run(
        mut self,
        pushes: impl Fn(PushInfo) -> Result<(), SendError> + Send + Sync + 'static,
    ) {
        let end = match self.open(pushes).await {
            Some(link) => self.listen(link).await,
            None => End::Refused,
        };
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut state = shared.lock();
        state.task = None;
        // They claim again, and watch over the next connection.
        state.waiting.clear();
        if matches!(end, End::Refused) {
            state.rests_until = Some(Instant::now() + REST);
        }
    }

    async fn open(
        &self,
        pushes: impl Fn(PushInfo) -> Result<(), SendError> + Send + Sync + 'static,
    ) -> Option<Link> {
        let server = self.connection.server();
        let mut link = match server.open_for_pushes(pushes).await? {
            Ok(link) => link,
            Err(why) => {
                tracing::debug!("{server}: waiters poll, because {why:?}");
                return None;
            }
        };
        let mut track = redis::cmd("CLIENT");
        track.arg("TRACKING").arg("ON");
        let tracks: RedisResult<()> = time::timeout(ANSWER, track.query_async(&mut link))
            .await
            .ok()?;
        if let Err(error) = tracks {
            tracing::debug!("{server}: waiters poll, because it does not track keys: {error}");
            return None;
        }
        Some(link)
    }

    async fn listen(&mut self, mut link: Link) -> End {
        let opened = self.connection.opened();
        loop {
            let mut looks = Vec::new();
            match time::timeout(TRIED, self.events.recv()).await {
                Ok(Some(event)) => {
                    if !self.take(event, &mut looks) {
                        return End::Lost;
                    }
                }
                // The store has gone.
                Ok(None) => return End::Lost,
                // A connection on which nothing arrives does not say so; nor does a server whose
                // place another has taken.
                Err(_) if self.connection.opened() != opened => return End::Lost,
                Err(_) if self.nobody_waits() => continue,
                Err(_) => {}
            }
            while looks.len() < BATCH
                && let Ok(event) = self.events.try_recv()
            {
                if !self.take(event, &mut looks) {
                    return End::Lost;
                }
            }
            looks.sort_unstable();
            looks.dedup();
            if !self.look(&mut link, looks).await {
                return End::Lost;
            }
        }
    }

    fn nobody_waits(&self) -> bool {
        let shared = self.shared.upgrade();
        shared.is_none_or(|shared| shared.lock().waiting.is_empty())
    }

    /// Notes which keys to look at; false if the connection has gone.
    fn take(&self, event: Event, looks: &mut Vec<Arc<str>>) -> bool {
        let push = match event {
            Event::Look(key) => {
                looks.push(key);
                return true;
            }
            Event::Push(push) => push,
        };
        if push.kind == PushKind::Disconnection {
            return false;
        }
        if push.kind != PushKind::Invalidate {
            return true;
        }
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        let state = shared.lock();
        if let Some(Value::Array(keys)) = push.data.into_iter().next() {
            let keys = keys.iter().filter_map(|key| match_key(&state, key));
            looks.extend(keys);
        } else {
            // All keys have gone.
            looks.extend(state.waiting.keys().cloned());
        }
        true
    }

    /// Reads who holds these keys now, which registers them with the server. False if it does not
    /// answer.
    async fn look(&self, link: &mut Link, keys: Vec<Arc<str>>) -> bool {
        let mut commands = Pipeline::with_capacity(keys.len().max(1));
        for key in &keys {
            let holder = commands.cmd("GETRANGE");
            holder.arg(&**key).arg(0).arg(HOLDER - 1);
        }
        if keys.is_empty() {
            commands.cmd("PING");
        }
        let asked = commands.ignore_errors().query_async(link);
        let replies: Vec<RedisResult<Value>> = match time::timeout(ANSWER, asked).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(_)) | Err(_) => return false,
        };
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        let mut state = shared.lock();
        for (key, reply) in keys.iter().zip(replies) {
            state.looked(key, reply.ok());
        }
        true
    }
}

/// The key that a server names, if anybody waits for it.
fn match_key(state: &State, key: &Value) -> Option<Arc<str>> {
    let Value::BulkString(key) = key else {
        return None;
    };
    let (key, _) = state.waiting.get_key_value(str::from_utf8(key).ok()?)?;
    Some(Arc::clone(key))
}

impl State {
    /// Ends those who wait for this key, unless the claim that they wait for stands.
    fn looked(&mut self, key: &str, stands: Option<Value>) {
        let Some(waiting) = self.waiting.get_mut(key) else {
            return;
        };
        if let Some(Value::BulkString(holder)) = stands
            && value::is_claim(&holder)
            && waiting
                .holder
                .as_ref()
                .is_none_or(|before| *before == holder)
        {
            waiting.holder = Some(holder);
        } else {
            self.waiting.remove(key);
        }
    }
}
