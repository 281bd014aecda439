//! What happened in a round: operations, attempts, faults, lives of copies.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use parking_lot::Mutex;
use serde::Deserialize;

/// Milliseconds, of a span or since 1970.
pub type Ms = u64;

/// An order as the copies write it down.
#[derive(Debug, Clone, Deserialize)]
pub struct Row {
    /// Its number, which no other row has.
    pub id: u64,
    /// The request's idempotency key.
    pub key: Option<String>,
    /// Whether the store has guarded the run.
    pub guarded: bool,
    /// Which copy has run it, by its address.
    pub copy: String,
    /// When its handler had done its work.
    pub created_ms: Ms,
}

/// What a client wants done once.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) quantity: u64,
    /// How long the handler works.
    pub(super) delay_ms: Ms,
    /// How many runs fail on each copy before one succeeds there.
    pub(super) fail_times: u64,
}

/// One request, and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) copy: usize,
    pub(super) from: Ms,
    pub(super) until: Ms,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Created {
        replayed: bool,
        body: String,
    },
    /// A refusal that is to be retried: by its status, and the problem's type if it has one.
    Refused(String),
    /// The client gave up, or the connection broke.
    NoAnswer(&'static str),
    /// What no client should ever see.
    Wrong(String),
}

/// What a fault can do to the promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: all of them hold.
    None,
    /// The process ended.
    Killed,
    /// The process stood still for longer than it keeps a lease.
    Frozen,
    /// Commands failed, for less time than a lease lasts unrenewed.
    Troubled,
    /// Commands failed for longer than that, so that a lease could be over unnoticed.
    Apart,
    /// All records and claims were lost.
    Lost,
}

/// A fault, and for how long its effect is to be expected.
#[derive(Debug, Clone)]
pub(super) struct Struck {
    pub(super) what: String,
    pub(super) effect: Effect,
    /// Which copy, or all.
    pub(super) copy: Option<usize>,
    pub(super) from: Ms,
    pub(super) until: Ms,
}

impl Struck {
    pub(super) fn hits(&self, copy: usize) -> bool {
        self.copy.is_none_or(|hit| hit == copy)
    }

    pub(super) fn overlaps(&self, from: Ms, until: Ms) -> bool {
        self.from <= until && from <= self.until
    }
}

/// A process: which copy it is, and from when to when.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) copy: usize,
    pub(super) address: String,
    pub(super) from: Ms,
    pub(super) killed: Option<Ms>,
}

/// All that is known of one key.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) order: Order,
    pub(super) attempts: Vec<Attempt>,
    /// What it replays once everything has healed.
    pub(super) replays: Vec<Attempt>,
}

impl Operation {
    /// Whether a client was answered.
    pub(super) fn is_answered(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.body().is_some())
    }

    /// What clients were answered, to the end.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &str> {
        let attempts = self.attempts.iter().chain(&self.replays);
        attempts.filter_map(Attempt::body)
    }
}

impl Attempt {
    fn body(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Created { body, .. } => Some(body),
            Outcome::Refused(_) | Outcome::NoAnswer(_) | Outcome::Wrong(_) => None,
        }
    }
}

/// Written by clients and faults while they go on.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Past>);

/// What has happened by now.
#[derive(Debug, Default, Clone)]
pub(super) struct Past {
    pub(super) operations: BTreeMap<String, Operation>,
    pub(super) faults: Vec<Struck>,
    pub(super) lives: Vec<Life>,
}

impl History {
    pub(super) fn begin(&self, key: &str, order: Order) {
        let operation = Operation {
            order,
            attempts: Vec::new(),
            replays: Vec::new(),
        };
        let before = self.0.lock().operations.insert(key.to_owned(), operation);
        assert!(before.is_none(), "two operations have the key {key}");
    }

    pub(super) fn order(&self, key: &str) -> Order {
        self.0.lock().operations[key].order.clone()
    }

    /// How many operations have begun.
    pub(super) fn operations(&self) -> usize {
        self.0.lock().operations.len()
    }

    pub(super) fn attempt(&self, key: &str, attempt: Attempt) {
        let mut past = self.0.lock();
        let operation = past.operations.get_mut(key);
        operation.expect("it has begun").attempts.push(attempt);
    }

    pub(super) fn struck(&self, fault: Struck) {
        self.0.lock().faults.push(fault);
    }

    pub(super) fn born(&self, copy: usize, address: &str, from: Ms) {
        self.0.lock().lives.push(Life {
            copy,
            address: address.to_owned(),
            from,
            killed: None,
        });
    }

    pub(super) fn killed(&self, copy: usize, at: Ms) {
        let mut past = self.0.lock();
        let mut lives = past.lives.iter_mut().rev();
        let life = lives.find(|life| life.copy == copy);
        life.expect("it was born").killed = Some(at);
    }

    pub(super) fn past(&self) -> Past {
        self.0.lock().clone()
    }
}

impl Past {
    /// The process that has written a row.
    pub(super) fn life(&self, row: &Row) -> &Life {
        let mut lives = self.lives.iter().rev();
        let life = lives.find(|life| life.address == row.copy && life.from <= row.created_ms);
        life.unwrap_or_else(|| panic!("no copy was at {}", row.copy))
    }

    /// What a reader needs to judge a key: its attempts, rows and the faults meanwhile, by time.
    pub(super) fn tale(&self, key: &str, rows: &[&Row]) -> String {
        let operation = &self.operations[key];
        let mut lines: Vec<(Ms, String)> = Vec::new();
        for attempt in operation.attempts.iter().chain(&operation.replays) {
            let took = attempt.until - attempt.from;
            let line = format!("copy {}: {} after {took} ms", attempt.copy, attempt.outcome);
            lines.push((attempt.from, format!("sent to {line}")));
        }
        for row in rows {
            let guarded = if row.guarded { "" } else { ", unguarded" };
            let copy = self.life(row).copy;
            lines.push((
                row.created_ms,
                format!("ROW {} by copy {copy}{guarded}", row.id),
            ));
        }
        let from = lines.iter().map(|line| line.0).min().unwrap_or(0);
        let until = lines.iter().map(|line| line.0).max().unwrap_or(0);
        for fault in &self.faults {
            if fault.overlaps(from.saturating_sub(1000), until + 1000) {
                let expected = fault.until.saturating_sub(fault.from);
                let line = format!("{} ({:?} for {expected} ms)", fault.what, fault.effect);
                lines.push((fault.from, line));
            }
        }
        lines.sort();
        let mut tale = format!("key {key}, {:?}, times in ms:", operation.order);
        for (at, line) in lines {
            let at = i128::from(at) - i128::from(from);
            write!(tale, "\n  {at:>6}  {line}").expect("a String takes everything");
        }
        tale
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created { replayed, body } => {
                let how = if *replayed { "replay" } else { "answer" };
                write!(f, "{how} {body}")
            }
            Self::Refused(why) => write!(f, "refused with {why}"),
            Self::NoAnswer(why) => write!(f, "no answer, {why}"),
            Self::Wrong(what) => write!(f, "WRONG {what}"),
        }
    }
}
