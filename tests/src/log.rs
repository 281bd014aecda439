//! What is logged, for tests that read it.

use std::{
    fmt::{Debug, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::{self, DefaultGuard},
};

/// The lines logged on this thread since [`begin`](Self::begin), each `LEVEL message field=value`.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Logs on this thread go here until the guard is dropped.
    #[must_use]
    pub fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = subscriber::set_default(Lines(log.clone()));
        (log, guard)
    }

    /// Logs of all threads go here, to the end of the process.
    ///
    /// # Panics
    ///
    /// Where another has been told so before.
    #[must_use]
    pub fn of_the_process() -> Self {
        let log = Self::default();
        subscriber::set_global_default(Lines(log.clone())).expect("the only one");
        log
    }

    /// The lines that have this in them.
    #[must_use]
    pub fn with(&self, part: &str) -> Vec<String> {
        let lines = self.0.lock();
        let found = lines.iter().filter(|line| line.contains(part));
        found.cloned().collect()
    }
}

struct Lines(Log);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = if field.name() == "message" {
            write!(self.0, " {value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
        written.expect("a string takes everything");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.0.lock().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
