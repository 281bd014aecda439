//! What all answers and rows come to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use crate::{client::Answer, shop::Rows};

#[derive(Default)]
pub(crate) struct Tally {
    sent: u64,
    executed: u64,
    replayed: u64,
    conflicts: u64,
    troubles: u64,
    slowest: Duration,
    /// Why requests got no answer, and how many.
    failures: BTreeMap<String, u64>,
    keys: BTreeMap<String, Seen>,
    rows: Rows,
}

/// What the clients of one key saw.
#[derive(Default)]
struct Seen {
    bodies: BTreeSet<String>,
    executed: usize,
}

impl Tally {
    /// Counts an answer; `None` from a client that has died.
    pub(crate) fn count(&mut self, answer: Option<Answer>) {
        self.sent += 1;
        let Some(answer) = answer else {
            *self.failures.entry("a client died".to_owned()).or_default() += 1;
            return;
        };
        self.conflicts += answer.conflicts;
        self.troubles += answer.troubles;
        self.slowest = self.slowest.max(answer.took);
        let seen = self.keys.entry(answer.key).or_default();
        match answer.outcome {
            Ok(success) => {
                if success.replayed {
                    self.replayed += 1;
                } else {
                    self.executed += 1;
                    seen.executed += 1;
                }
                seen.bodies.insert(success.body);
            }
            Err(problem) => *self.failures.entry(problem).or_default() += 1,
        }
    }

    pub(crate) fn with_rows(self, rows: Rows) -> Self {
        Self { rows, ..self }
    }

    /// Whether every request was answered, every key with one answer, and no order created twice.
    pub(crate) fn is_right(&self) -> bool {
        self.failures.is_empty()
            && self.twice().is_empty()
            && self.answered_differently().is_empty()
    }

    /// The keys whose order was created more than once, by the answers or by the rows.
    fn twice(&self) -> Vec<&str> {
        let rows = |key: &str| self.rows.by_key.get(key).copied().unwrap_or_default();
        let twice = self
            .keys
            .iter()
            .filter(|(key, seen)| seen.executed.max(rows(key)) > 1);
        twice.map(|(key, _)| &**key).collect()
    }

    fn answered_differently(&self) -> Vec<&str> {
        let differently = self.keys.iter().filter(|(_, seen)| seen.bodies.len() > 1);
        differently.map(|(key, _)| &**key).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: u64 = self.failures.values().sum();
        let slowest = self.slowest.as_millis();
        writeln!(
            f,
            "  {} sent: {} executed, {} replayed, {failed} failed; slowest {slowest} ms",
            self.sent, self.executed, self.replayed
        )?;
        writeln!(
            f,
            "  retried after {} conflicts (409) and {} errors (no answer, 503)",
            self.conflicts, self.troubles
        )?;
        let created: usize = self.rows.by_key.values().sum();
        write!(f, "  rows in GET /orders: {created}")?;
        for url in &self.rows.without {
            write!(
                f,
                ", without those of {url}, which does not answer any more"
            )?;
        }
        writeln!(f)?;
        for (problem, count) in &self.failures {
            writeln!(f, "FAILED {count} times: {problem}")?;
        }
        list(f, "CREATED MORE THAN ONCE", &self.twice())?;
        list(f, "ANSWERED DIFFERENTLY", &self.answered_differently())?;
        if self.is_right() {
            write!(
                f,
                "Every order was created once, and every key has one answer."
            )?;
        } else {
            write!(
                f,
                "That is not right. Do all copies run, and share one store (`--store redis://..`)?"
            )?;
        }
        Ok(())
    }
}

/// A few of the keys, and how many there are.
fn list(f: &mut fmt::Formatter<'_>, what: &str, keys: &[&str]) -> fmt::Result {
    if keys.is_empty() {
        return Ok(());
    }
    let some: Vec<_> = keys.iter().copied().take(3).collect();
    let more = if keys.len() > some.len() { ", .." } else { "" };
    writeln!(f, "{what}: {} keys: {}{more}", keys.len(), some.join(", "))
}
