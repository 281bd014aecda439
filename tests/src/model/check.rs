//! Assertions over whole walks. A failing one prints the question that was hit and a shortest trace to it.

use super::action::Action;
use super::cast::Cast;
use super::explore::{Question, Walk, explore, shortest};
use super::faults::Faults;
use super::protocol::Protocol;
use super::rules::Rules;

/// Walks every state and answers `questions`.
#[must_use]
pub fn walk(
    rules: Rules,
    faults: Faults,
    cast: Cast,
    questions: &[Question<Protocol>],
) -> Walk<Action> {
    let protocol = Protocol {
        rules,
        faults,
        cast,
    };
    explore(&protocol, questions)
}

/// None of `questions` is ever hit, whoever of these asks, and every path ends.
///
/// # Panics
///
/// Where one is, or where a path does not end.
#[track_caller]
pub fn never_among(casts: &[Cast], rules: Rules, faults: Faults, questions: &[Question<Protocol>]) {
    for &cast in casts {
        let walk = walk(rules, faults, cast, questions);
        let hit = walk.hits.first();
        assert!(
            hit.is_none(),
            "{hit:?} with {cast:?}, {faults:?}, {rules:?}"
        );
        assert!(
            walk.finite,
            "a path does not end: {cast:?}, {faults:?}, {rules:?}"
        );
    }
}

/// None of `questions` is ever hit in the two casts of three requests, and every path ends.
///
/// # Panics
///
/// Where one is, or where a path does not end.
#[track_caller]
pub fn never(rules: Rules, faults: Faults, questions: &[Question<Protocol>]) {
    never_among(&Cast::BOTH, rules, faults, questions);
}

/// `question` is hit, and the shortest trace to it has `length` steps.
///
/// # Panics
///
/// Where it is not hit, or where the trace is longer or shorter.
#[track_caller]
pub fn reaches(
    rules: Rules,
    faults: Faults,
    cast: Cast,
    question: &Question<Protocol>,
    length: usize,
) {
    let protocol = Protocol {
        rules,
        faults,
        cast,
    };
    let trace = shortest(&protocol, question);
    let steps = trace.as_ref().map(Vec::len);
    assert_eq!(
        steps,
        Some(length),
        "{question:?} under {faults:?}: {trace:?}"
    );
}
