//! Four requests for one key on two replicas, with several faults at once: what is left to happen, and nothing else.
//!
//! The two smallest walks always run. The others visit up to 4.5 million states each, take a minute and up to 2 GB of
//! memory together, and find nothing that three requests do not show; they run where the environment variable
//! `IDEMPOTENT_LONG` is `1`.

use idempotent_tests::model::cast::Cast;
use idempotent_tests::model::check::walk;
use idempotent_tests::model::explore::Question;
use idempotent_tests::model::faults::Faults;
use idempotent_tests::model::properties::*;
use idempotent_tests::model::protocol::Protocol;
use idempotent_tests::model::rules::Rules;

const NONE: Faults = Faults::NONE;
const TWO_PAUSES_CRASH: Faults = Faults {
    pause: 2,
    ..Faults::CRASH
};
const UNRELIABLE: Faults = Faults {
    reply_lost: 1,
    unreachable: 1,
    late: 1,
    ..NONE
};
const PAUSE_CRASH_UNREACHABLE: Faults = Faults {
    unreachable: 1,
    ..Faults::PAUSE_CRASH
};

fn questions() -> Vec<Question<Protocol>> {
    let mut all = vec![S1_TWO_SUCCESSES, S3_RAN_OVER, S4_CONVERTED];
    all.extend([S5_DISAGREE, S5_REPLAYS_DISAGREE, L1_BLOCKED, ORPHAN]);
    all.extend(ALWAYS);
    all.extend(DOUBLE_RUNS);
    all.extend(AVOIDABLE);
    all
}

/// The walk hits exactly these questions, and every path ends.
#[track_caller]
fn finds<const N: usize>(
    rules: Rules,
    faults: Faults,
    cast: Cast,
    expected: [Question<Protocol>; N],
) {
    let walk = walk(rules, faults, cast, &questions());
    let mut found = walk.names();
    let mut expected = expected.map(|question| question.name);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{faults:?} {cast:?} {:#?}", walk.hits);
    assert!(walk.finite, "{faults:?} {cast:?}");
}

fn long() -> bool {
    std::env::var_os("IDEMPOTENT_LONG").is_some_and(|value| value == "1")
}

/// Four of the same: a lost lease and a crash cost runs, but all clients get one answer.
#[test]
fn lost_leases_cost_runs_but_not_answers() {
    let closed = Rules::engine().closed();
    let runs = [S1_TWO_SUCCESSES, S4_CONVERTED, BY_PAUSE, BY_CRASH];
    finds(closed, Faults::PAUSE_CRASH, Cast::FOUR_SAME, runs);
}

/// With another body among them, and two lost leases, two clients can disagree: the case that three requests show.
#[test]
fn two_lost_leases_and_another_body() {
    let closed = Rules::engine().closed();
    let left = || {
        [
            S1_TWO_SUCCESSES,
            S4_CONVERTED,
            S5_DISAGREE,
            BY_PAUSE,
            BY_CRASH,
        ]
    };
    finds(closed, TWO_PAUSES_CRASH, Cast::FOUR_MIXED, left());
    if long() {
        finds(closed, TWO_PAUSES_CRASH, Cast::FOUR_PAIRS, left());
        // A lost reply of complete, answered at once, does it with one.
        let faults = Faults {
            reply_lost: 1,
            ..Faults::PAUSE_CRASH
        };
        finds(closed, faults, Cast::FOUR_MIXED, left());
    }
}

/// Fail-closed, nothing lost: whatever the network does, one run and one answer. The plain design runs twice.
#[test]
fn an_unreliable_network() {
    if !long() {
        return;
    }
    let closed = Rules::engine().closed();
    let faults = Faults {
        unreachable: 2,
        ..UNRELIABLE
    };
    finds(closed, faults, Cast::FOUR_MIXED, [ORPHAN]);
    finds(closed, UNRELIABLE, Cast::FOUR_SAME, [ORPHAN]);
    let plain = [
        S1_TWO_SUCCESSES,
        S5_DISAGREE,
        L1_BLOCKED,
        ORPHAN,
        BY_UNDELIVERED,
        A1_AFTER_TOLD,
        A5_UNREPORTED,
    ];
    let rules = Rules::plain().closed();
    finds(rules, UNRELIABLE, Cast::FOUR_MIXED, plain);
}

/// Fail-open: what is inherent in it is left, and nothing avoidable.
#[test]
fn fail_open_leaves_nothing_avoidable() {
    if !long() {
        return;
    }
    let (open, cast) = (Rules::engine(), Cast::FOUR_MIXED);
    let inherent = [
        S1_TWO_SUCCESSES,
        S3_RAN_OVER,
        S4_CONVERTED,
        S5_DISAGREE,
        BY_FAIL_OPEN,
        BY_PAUSE,
        BY_CRASH,
    ];
    finds(open, PAUSE_CRASH_UNREACHABLE, cast, inherent);
    let loss = Faults {
        loss: 1,
        ..Faults::PAUSE_UNREACHABLE
    };
    let inherent = [
        S1_TWO_SUCCESSES,
        S3_RAN_OVER,
        S4_CONVERTED,
        S5_DISAGREE,
        BY_FAIL_OPEN,
        BY_PAUSE,
        BY_LOSS,
    ];
    finds(open, loss, cast, inherent);
    let failover = Faults {
        reply_lost: 1,
        ..Faults::FAILOVER
    };
    let inherent = [
        S1_TWO_SUCCESSES,
        S3_RAN_OVER,
        S4_CONVERTED,
        S5_DISAGREE,
        ORPHAN,
        BY_FAIL_OPEN,
        BY_LOSS,
    ];
    finds(open, failover, cast, inherent);
    let unreachable = Faults {
        unreachable: 3,
        ..NONE
    };
    let inherent = [
        S1_TWO_SUCCESSES,
        S4_CONVERTED,
        S5_DISAGREE,
        S5_REPLAYS_DISAGREE,
        BY_FAIL_OPEN,
    ];
    finds(open, unreachable, Cast::FOUR_SAME, inherent);
}

/// The plain design has all of it.
#[test]
fn the_plain_design_has_every_avoidable_case() {
    if !long() {
        return;
    }
    let mut expected = [
        S1_TWO_SUCCESSES,
        S3_RAN_OVER,
        S5_DISAGREE,
        ORPHAN,
        BY_FAIL_OPEN,
        BY_PAUSE,
        BY_CRASH,
        BY_UNDELIVERED,
    ]
    .map(|question| question.name)
    .to_vec();
    expected.extend(AVOIDABLE.iter().map(|question| question.name));
    let plain = Rules::plain();
    let walk = walk(
        plain,
        PAUSE_CRASH_UNREACHABLE,
        Cast::FOUR_MIXED,
        &questions(),
    );
    let mut found = walk.names();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
