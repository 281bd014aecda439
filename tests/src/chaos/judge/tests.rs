//! The judge excuses what is documented, and nothing else.

use super::*;
use crate::chaos::history::{Attempt, Life, Operation, Order, Struck};

/// Two copies that have lived since 0, and one key that both have run: at 10 s and 12 s.
fn twice(mode: Mode) -> Evidence {
    let row = |id, copy: &str, created_ms| Row {
        id,
        key: Some("k".into()),
        guarded: true,
        copy: copy.into(),
        created_ms,
    };
    let life = |copy, address: &str| Life {
        copy,
        address: address.into(),
        from: 0,
        killed: None,
    };
    let operation = Operation {
        order: Order {
            quantity: 1,
            delay_ms: 100,
            fail_times: 0,
        },
        attempts: vec![answer(1)],
        replays: vec![answer(1), answer(1)],
    };
    Evidence {
        mode,
        past: Past {
            operations: BTreeMap::from([("k".into(), operation)]),
            faults: Vec::new(),
            lives: vec![life(0, "zero"), life(1, "one")],
        },
        rows: vec![row(1, "zero", 10_000), row(2, "one", 12_000)],
        counts: Counts {
            failed_claims: HashMap::from([("zero".into(), 1), ("one".into(), 1)]),
            double_effects: 1,
        },
    }
}

fn answer(id: u64) -> Attempt {
    Attempt {
        copy: 0,
        from: 9900,
        until: 10_010,
        outcome: Outcome::Created {
            replayed: false,
            body: format!(r#"{{"id":{id}}}"#),
        },
    }
}

fn struck(effect: Effect, copy: usize, from: Ms, until: Ms) -> Struck {
    Struck {
        what: "a fault".into(),
        effect,
        copy: Some(copy),
        from,
        until,
    }
}

/// The broken promises, by their first words.
fn broken(evidence: &Evidence) -> Vec<String> {
    let broken = evidence.judge().broken.into_iter();
    broken
        .map(|tale| tale.split(':').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn two_runs_without_a_cause_break_the_promise() {
    assert_eq!(broken(&twice(Mode::Open)), ["two runs"]);
    assert_eq!(broken(&twice(Mode::Closed)), ["two runs"]);
}

#[test]
fn a_fault_excuses_only_the_runs_that_it_can_have_hit() {
    for (effect, copy, from, until, excused) in [
        (Effect::Frozen, 0, 9950, 11_900, true),
        (Effect::Frozen, 1, 11_000, 11_950, true),
        (Effect::Apart, 0, 10_100, 13_000, true),
        (Effect::Lost, 1, 11_000, 11_000, true),
        // Before, after, of the other copy, or too little.
        (Effect::Frozen, 0, 8000, 9500, false),
        (Effect::Frozen, 0, 10_400, 12_000, false),
        (Effect::Apart, 1, 10_000, 11_500, false),
        (Effect::Lost, 1, 9000, 9000, false),
        (Effect::Lost, 1, 12_100, 12_100, false),
        (Effect::Troubled, 0, 9950, 11_900, false),
        (Effect::None, 0, 9950, 11_900, false),
        (Effect::Killed, 0, 10_001, 10_001, false),
    ] {
        let mut evidence = twice(Mode::Open);
        evidence.past.faults.push(struck(effect, copy, from, until));
        let what = format!("{effect:?} of {copy} at {from} to {until}");
        assert_eq!(broken(&evidence).is_empty(), excused, "{what}");
    }
}

#[test]
fn a_death_excuses_the_run_that_was_not_recorded_yet() {
    for (killed, excused) in [(10_001, true), (9000, false), (10_400, false)] {
        let mut evidence = twice(Mode::Open);
        evidence.past.lives[0].killed = Some(killed);
        assert_eq!(broken(&evidence).is_empty(), excused, "killed at {killed}");
    }
}

#[test]
fn an_unguarded_run_needs_a_cause_and_the_open_mode() {
    for (mode, troubled, excused) in [
        (Mode::Open, true, true),
        (Mode::Open, false, false),
        (Mode::Closed, true, false),
    ] {
        let mut evidence = twice(mode);
        evidence.rows[1].guarded = false;
        if troubled {
            let cause = struck(Effect::Troubled, 1, 11_800, 11_900);
            evidence.past.faults.push(cause);
        }
        assert_eq!(broken(&evidence).is_empty(), excused, "{mode}, {troubled}");
    }
}

#[test]
fn what_is_not_counted_or_not_answered_breaks_a_promise() {
    let frozen = || {
        let mut evidence = twice(Mode::Open);
        let cause = struck(Effect::Frozen, 0, 9950, 11_900);
        evidence.past.faults.push(cause);
        evidence
    };
    let operation = |evidence: &mut Evidence, change: fn(&mut Operation)| {
        change(evidence.past.operations.get_mut("k").expect("the key"));
    };
    assert_eq!(broken(&frozen()), [""; 0]);

    let mut silent = frozen();
    silent.counts.double_effects = 0;
    assert_eq!(broken(&silent).len(), 1);

    let mut uncounted = frozen();
    uncounted.rows[0].guarded = false;
    uncounted.counts.failed_claims.insert("zero".into(), 0);
    assert_eq!(broken(&uncounted).len(), 1);

    let mut unanswered = frozen();
    operation(&mut unanswered, |operation| {
        operation.attempts[0].outcome = Outcome::NoAnswer("the client gave up");
        operation.replays.clear();
    });
    assert_eq!(
        broken(&unanswered),
        ["no answer", "not one replay after healing"]
    );

    let mut other = frozen();
    operation(&mut other, |operation| {
        operation.attempts.push(answer(2));
    });
    assert_eq!(broken(&other), ["two answers"]);

    let mut another = frozen();
    operation(&mut another, |operation| {
        operation.replays[1].outcome = Outcome::Created {
            replayed: true,
            body: r#"{"id":2}"#.into(),
        }
    });
    assert_eq!(
        broken(&another),
        ["two answers", "not one replay after healing"]
    );

    let mut invented = frozen();
    invented.rows.remove(0);
    assert_eq!(
        broken(&invented),
        ["an answer without a row", "not one replay after healing"]
    );
}
