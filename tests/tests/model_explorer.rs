//! The walk itself: it visits every state once, finds shortest traces, and notices cycles.

use std::collections::HashMap;

use idempotent_tests::model::cast::Cast;
use idempotent_tests::model::explore::{Machine, Question, explore, shortest};
use idempotent_tests::model::faults::Faults;
use idempotent_tests::model::properties::*;
use idempotent_tests::model::protocol::Protocol;
use idempotent_tests::model::rules::Rules;

/// A counter that adds 1 or 3 until it is at `end` or beyond; at `back` it may also return to 0.
struct Counter {
    end: u8,
    back: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    One,
    Three,
    Back,
}

impl Machine for Counter {
    type State = u8;
    type Action = Move;

    fn start(&self) -> u8 {
        0
    }

    fn actions(&self, state: &u8, into: &mut Vec<Move>) {
        if *state < self.end {
            into.extend([Move::One, Move::Three]);
        }
        if self.back == Some(*state) {
            into.push(Move::Back);
        }
    }

    fn step(&self, state: &u8, action: Move) -> u8 {
        match action {
            Move::One => state + 1,
            Move::Three => state + 3,
            Move::Back => 0,
        }
    }
}

const AT_SEVEN: Question<Counter> = Question {
    name: "at seven",
    hit: |_, state, _| *state == 7,
};
const LAST: Question<Counter> = Question {
    name: "at the end",
    hit: |_, _, last| last,
};
const BEYOND: Question<Counter> = Question {
    name: "beyond the end",
    hit: |counter, state, _| *state > counter.end + 2,
};

#[test]
fn it_visits_every_state_and_finds_shortest_traces() {
    let counter = Counter {
        end: 10,
        back: None,
    };
    let walk = explore(&counter, &[AT_SEVEN, LAST, BEYOND]);
    assert_eq!(walk.states, 13);
    assert!(walk.finite);
    assert_eq!(walk.names(), [AT_SEVEN.name, LAST.name]);
    assert_eq!(walk.trace(AT_SEVEN.name).map(<[Move]>::len), Some(3));
    assert_eq!(walk.trace(LAST.name).map(<[Move]>::len), Some(4));
    assert_eq!(walk.trace(BEYOND.name), None);
    assert_eq!(
        shortest(&counter, &AT_SEVEN).as_deref(),
        walk.trace(AT_SEVEN.name)
    );
    assert_eq!(shortest(&counter, &BEYOND), None);
}

/// Every step of a trace can be taken where the trace takes it, and the last one hits the question.
#[test]
fn a_trace_leads_where_it_says() {
    let protocol = Protocol {
        rules: Rules::plain(),
        faults: Faults::PAUSE,
        cast: Cast::MIXED,
    };
    let trace = shortest(&protocol, &S5_DISAGREE).unwrap_or_default();
    assert!(!trace.is_empty());
    let mut state = protocol.start();
    for action in trace {
        assert!(!(S5_DISAGREE.hit)(&protocol, &state, false));
        let mut offered = Vec::new();
        protocol.actions(&state, &mut offered);
        assert!(offered.contains(&action), "{action:?} in {state:?}");
        state = protocol.step(&state, action);
    }
    assert!((S5_DISAGREE.hit)(&protocol, &state, false));
}

#[test]
fn it_notices_a_cycle() {
    let counter = Counter {
        end: 10,
        back: Some(4),
    };
    let walk = explore(&counter, &[LAST]);
    assert_eq!(walk.states, 13);
    assert!(!walk.finite);
}

/// What a second walk found: the number of states, for each question whether it was hit, and whether every path ends.
type Found = (usize, Vec<bool>, bool);

/// A second walk that shares nothing with the first: depth first, the standard library's hasher, cycles by colour.
fn depth_first<M: Machine>(machine: &M, questions: &[Question<M>]) -> Found {
    let mut hits = vec![false; questions.len()];
    let mut finite = true;
    // A state is on the path (false) or done (true).
    let mut colour: HashMap<M::State, bool> = HashMap::new();
    let mut stack = vec![(machine.start(), false)];
    while let Some((state, leaving)) = stack.pop() {
        if leaving {
            colour.insert(state, true);
            continue;
        }
        match colour.insert(state, false) {
            None => {}
            // Reached again by another way, and done long since.
            Some(true) => {
                colour.insert(state, true);
                continue;
            }
            Some(false) => {
                finite = false;
                continue;
            }
        }
        let mut actions = Vec::new();
        machine.actions(&state, &mut actions);
        for (question, hit) in questions.iter().zip(&mut hits) {
            *hit |= (question.hit)(machine, &state, actions.is_empty());
        }
        stack.push((state, true));
        stack.extend(
            actions
                .into_iter()
                .map(|action| (machine.step(&state, action), false)),
        );
    }
    (colour.len(), hits, finite)
}

#[test]
fn the_second_walk_notices_a_cycle_too() {
    for (back, ends) in [(None, true), (Some(4), false)] {
        let counter = Counter { end: 10, back };
        let found = depth_first(&counter, &[AT_SEVEN, BEYOND]);
        assert_eq!(found, (13, vec![true, false], ends));
    }
}

#[test]
fn two_independent_walks_agree() {
    let mut questions = vec![
        S1_TWO_SUCCESSES,
        S3_RAN_OVER,
        S5_DISAGREE,
        L1_BLOCKED,
        ORPHAN,
    ];
    questions.extend(ALWAYS);
    questions.extend(AVOIDABLE);
    questions.extend(DOUBLE_RUNS);
    let none = Faults::NONE;
    for faults in [
        none,
        Faults::PAUSE_CRASH,
        Faults {
            loss: 1,
            reply_lost: 1,
            ..none
        },
        Faults {
            late: 1,
            failover: 1,
            ..none
        },
        Faults {
            unreachable: 2,
            retention: 1,
            ..none
        },
    ] {
        for rules in [Rules::plain(), Rules::engine()] {
            for rules in [rules, rules.closed()] {
                let protocol = Protocol {
                    rules,
                    faults,
                    cast: Cast::MIXED,
                };
                let walk = explore(&protocol, &questions);
                let hits = questions
                    .iter()
                    .map(|question| walk.trace(question.name).is_some());
                let found = (walk.states, hits.collect(), walk.finite);
                assert_eq!(depth_first(&protocol, &questions), found, "{protocol:?}");
            }
        }
    }
}
