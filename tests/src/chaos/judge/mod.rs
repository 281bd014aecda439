//! Whether the promises were kept, from the rows and the answers.
//!
//! A key may have two rows only where a documented case explains it: a copy died or stood still past
//! its lease while it ran that key, or was cut off from Redis so long; Redis lost its data; a copy
//! that was cut off ran it unguarded, as `on_store_failure = "open"` says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{
    history::{Effect, Ms, Outcome, Past, Row},
    world::Mode,
};

/// How long a healthy copy takes at most from its claim to the handler, and from the row to the
/// record.
const SLACK: Ms = 300;

/// What all copies that lived to the end have counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// By the address of a copy: commands that failed to claim.
    pub(super) failed_claims: HashMap<String, u64>,
    pub(super) double_effects: u64,
}

/// What is left after a round.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) mode: Mode,
    pub(super) past: Past,
    pub(super) rows: Vec<Row>,
    pub(super) counts: Counts,
}

/// What the judge found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Keys with more rows than one, by the documented case.
    pub excused: BTreeMap<&'static str, usize>,
    /// Operations that no fault can have touched.
    pub calm: usize,
    /// Runs without the guarantee.
    pub unguarded: usize,
    /// How many double effects the copies should at least have counted, and have.
    pub double_effects: (u64, u64),
    /// Broken promises, each with what happened.
    pub broken: Vec<String>,
}

impl Evidence {
    pub(super) fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        let mut rows: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(row.key.as_deref().unwrap_or("no key"))
                .or_default()
                .push(row);
        }
        for rows in rows.values_mut() {
            rows.sort_by_key(|row| row.created_ms);
        }
        let none = Vec::new();
        for key in self.past.operations.keys() {
            let rows = rows.get(&**key).unwrap_or(&none);
            verdict.calm += usize::from(self.is_calm(key));
            self.answers(key, rows, &mut verdict);
            self.one_answer(key, rows, &mut verdict);
            self.runs(key, rows, &mut verdict);
            self.replays(key, rows, &mut verdict);
        }
        self.counted(&mut verdict);
        verdict
    }

    fn is_calm(&self, key: &str) -> bool {
        let attempts = &self.past.operations[key].attempts;
        let from = attempts
            .iter()
            .map(|attempt| attempt.from)
            .min()
            .unwrap_or(0);
        let until = attempts
            .iter()
            .map(|attempt| attempt.until)
            .max()
            .unwrap_or(0);
        let faults = &self.past.faults;
        !faults.iter().any(|fault| {
            fault.effect != Effect::None
                && fault.overlaps(from.saturating_sub(SLACK), until + SLACK)
        })
    }

    /// Every operation was answered, and each answer is a row's.
    fn answers(&self, key: &str, rows: &[&Row], verdict: &mut Verdict) {
        let operation = &self.past.operations[key];
        let mut broken = |what: &str| {
            verdict
                .broken
                .push(format!("{what}: {}", self.past.tale(key, rows)));
        };
        if !operation.is_answered() {
            broken("no answer");
        }
        let wrong = |outcome: &Outcome| matches!(outcome, Outcome::Wrong(_));
        if operation
            .attempts
            .iter()
            .any(|attempt| wrong(&attempt.outcome))
        {
            broken("an answer that no client should see");
        }
        if !operation.bodies().all(|body| is_of(body, rows)) {
            broken("an answer without a row");
        }
    }

    /// Clients of one key get two answers only where a report came late or a record was lost: a
    /// success that finds another's record is answered by that one.
    fn one_answer(&self, key: &str, rows: &[&Row], verdict: &mut Verdict) {
        let bodies: BTreeSet<_> = self.past.operations[key].bodies().collect();
        let late = |row: &&Row| self.happened(row, &[Effect::Troubled, Effect::Apart]);
        let lost = |pair: &[&Row]| match pair {
            [first, second] => self.lost_between(first, second.created_ms),
            _ => false,
        };
        if bodies.len() > 1 && !rows.iter().any(late) && !rows.windows(2).any(lost) {
            let tale = self.past.tale(key, rows);
            verdict.broken.push(format!("two answers: {tale}"));
        }
    }

    /// No two rows without a documented case; no unguarded run but a documented one.
    fn runs(&self, key: &str, rows: &[&Row], verdict: &mut Verdict) {
        for row in rows.iter().filter(|row| !row.guarded) {
            verdict.unguarded += 1;
            let excused = self.mode == Mode::Open
                && self.happened(row, &[Effect::Troubled, Effect::Apart, Effect::Frozen]);
            if !excused {
                let tale = self.past.tale(key, rows);
                verdict.broken.push(format!("an unguarded run: {tale}"));
            }
        }
        for pair in rows.windows(2) {
            let [first, second] = pair else { continue };
            let Some(case) = self.excuse(first, second) else {
                let tale = self.past.tale(key, rows);
                verdict.broken.push(format!("two runs: {tale}"));
                continue;
            };
            *verdict.excused.entry(case).or_default() += 1;
            verdict.double_effects.0 += u64::from(self.is_to_be_counted(first, second));
        }
    }

    /// The documented case of two rows.
    fn excuse(&self, first: &Row, second: &Row) -> Option<&'static str> {
        let either =
            |effects: &[Effect]| self.happened(first, effects) || self.happened(second, effects);
        if self.lost_between(first, second.created_ms) {
            Some("Redis lost its data")
        } else if self.killed_after(first) {
            Some("killed before it was recorded")
        } else if !first.guarded || !second.guarded {
            // Judged by themselves.
            Some("fail-open")
        } else if either(&[Effect::Frozen]) {
            Some("frozen past its lease")
        } else if either(&[Effect::Apart]) {
            Some("cut off past its lease")
        } else {
            None
        }
    }

    /// The time in which a run can have lost its claim: from its start until its report has been
    /// carried out, which waits for the end of what is wrong with its copy.
    fn window(&self, row: &Row) -> (Ms, Ms) {
        let copy = self.past.life(row).copy;
        let key = row.key.as_deref().unwrap_or_default();
        let delay = self
            .past
            .operations
            .get(key)
            .map_or(0, |operation| operation.order.delay_ms);
        let mut from = row.created_ms.saturating_sub(delay + SLACK);
        let mut until = row.created_ms + SLACK;
        loop {
            let before = (from, until);
            let mut lasting = self.past.faults.iter().filter(|fault| {
                let lasts = matches!(
                    fault.effect,
                    Effect::Troubled | Effect::Apart | Effect::Frozen
                );
                lasts && fault.hits(copy) && fault.overlaps(from, until)
            });
            if let Some(fault) = lasting.find(|fault| fault.from < from || fault.until > until) {
                from = from.min(fault.from);
                until = until.max(fault.until);
            }
            if before == (from, until) {
                return before;
            }
        }
    }

    /// Whether a fault with such an effect hit the copy of a row while it ran the key.
    fn happened(&self, row: &Row, effects: &[Effect]) -> bool {
        let (from, until) = self.window(row);
        let copy = self.past.life(row).copy;
        self.past.faults.iter().any(|fault| {
            effects.contains(&fault.effect) && fault.hits(copy) && fault.overlaps(from, until)
        })
    }

    fn killed_after(&self, row: &Row) -> bool {
        let (_, until) = self.window(row);
        let killed = self.past.life(row).killed;
        killed.is_some_and(|at| (row.created_ms..=until).contains(&at))
    }

    fn lost_between(&self, first: &Row, until: Ms) -> bool {
        let (from, _) = self.window(first);
        let mut faults = self.past.faults.iter();
        faults.any(|fault| fault.effect == Effect::Lost && fault.overlaps(from, until))
    }

    /// Whether one of the two copies must have found the other's record: both reports came through,
    /// and Redis still knew of the first.
    fn is_to_be_counted(&self, first: &Row, second: &Row) -> bool {
        let survived = |row: &Row| self.past.life(row).killed.is_none();
        survived(first) && survived(second) && !self.lost_between(first, Ms::MAX)
    }

    /// After everything has healed, a key replays one response, which is a row's.
    fn replays(&self, key: &str, rows: &[&Row], verdict: &mut Verdict) {
        let mut last = BTreeSet::new();
        for attempt in &self.past.operations[key].replays {
            last.insert(match &attempt.outcome {
                Outcome::Created { body, .. } => Ok(&**body),
                Outcome::Refused(_) | Outcome::NoAnswer(_) | Outcome::Wrong(_) => Err(()),
            });
        }
        let one = match last.first() {
            Some(Ok(body)) => last.len() == 1 && is_of(body, rows),
            Some(Err(())) | None => false,
        };
        if !one {
            let tale = self.past.tale(key, rows);
            verdict
                .broken
                .push(format!("not one replay after healing: {tale}"));
        }
    }

    /// What a copy did without the guarantee, or beside another copy, it has counted.
    fn counted(&self, verdict: &mut Verdict) {
        for (address, &failed) in &self.counts.failed_claims {
            let unguarded = self
                .rows
                .iter()
                .filter(|row| !row.guarded && row.copy == *address);
            let unguarded = u64::try_from(unguarded.count()).expect("64 bits");
            if unguarded > failed {
                verdict.broken.push(format!(
                    "{address} ran {unguarded} orders unguarded, and counts {failed} failed claims"
                ));
            }
        }
        verdict.double_effects.1 = self.counts.double_effects;
        let (least, counted) = verdict.double_effects;
        if counted < least {
            verdict.broken.push(format!(
                "{least} keys ran twice on copies that still live, which count {counted} double effects"
            ));
        }
    }
}

/// Whether a body answers for one of these rows.
fn is_of(body: &str, rows: &[&Row]) -> bool {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    rows.iter().any(|row| body["id"] == row.id)
}

#[cfg(test)]
mod tests;
