//! What the protocol promises, checked over every interleaving of three requests for one key.
//!
//! Two requests are duplicates of the first, or one is a duplicate and the other has another body; two replicas serve
//! them. A failing test prints the question that was hit and a shortest trace to it.

use idempotent_tests::model::cast::Cast;
use idempotent_tests::model::check::{never, never_among, reaches, walk};
use idempotent_tests::model::explore::Question;
use idempotent_tests::model::faults::Faults;
use idempotent_tests::model::properties::*;
use idempotent_tests::model::protocol::Protocol;
use idempotent_tests::model::rules::{Complete, Rule, Rules};

const TWO_PAUSES: Faults = Faults {
    pause: 2,
    ..Faults::NONE
};

fn open_and_closed() -> [Rules; 2] {
    [Rules::engine(), Rules::engine().closed()]
}

fn with_unknown() -> Rules {
    Rules::engine().closed().with(Rule::UnknownOutcome)
}

#[test]
fn the_walk_reaches_every_kind_of_answer() {
    let mut missing: Vec<&str> = REACHES.iter().map(|question| question.name).collect();
    for (rules, faults) in [
        (Rules::engine().closed(), Faults::UNREACHABLE),
        (Rules::engine().with(Rule::UnknownOutcome), Faults::CRASH),
    ] {
        let walk = walk(rules, faults, Cast::MIXED, &REACHES);
        missing.retain(|name| walk.trace(name).is_none());
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// S2, S4, S6, L1, L2 hold under every fault, in the plain design and in the engine's, open and closed; every path ends.
#[test]
fn what_always_holds() {
    for rules in [Rules::plain(), Rules::engine()] {
        for faults in Faults::MATRIX {
            never(rules, faults, &ALWAYS);
            never(rules.closed(), faults, &ALWAYS);
        }
    }
}

/// The same without adopting, and with lapsed claims that stay (rule 13), where only L1 is given up, on purpose.
#[test]
fn what_holds_in_the_other_designs() {
    let strict = Rules::plain().closed().completing(Complete::Strict);
    let but_stuck = [S2_WRONG_REPLAY, S4_TOUCHED, S6_UNEXPLAINED, L2_UNANSWERED];
    for faults in Faults::MATRIX {
        never(strict, faults, &ALWAYS);
        never(with_unknown(), faults, &but_stuck);
    }
}

/// S1, S3, S5: while the store loses nothing, no lease is lost and nothing runs unguarded, whatever the network does.
#[test]
fn nothing_lost_is_one_run_and_one_answer() {
    for faults in Faults::NETWORK {
        let questions = [S1_TWO_SUCCESSES, S3_RAN_OVER, S5_DISAGREE, S4_CONVERTED];
        never(Rules::engine().closed(), faults, &questions);
    }
}

/// S6: each fault alone explains exactly its own kind of double run.
#[test]
fn every_double_run_has_one_cause() {
    let causes = |rules, faults| walk(rules, faults, Cast::SAME, &DOUBLE_RUNS).names();
    let closed = Rules::engine().closed();
    assert_eq!(causes(closed, Faults::CRASH), [BY_CRASH.name]);
    assert_eq!(causes(closed, Faults::PAUSE), [BY_PAUSE.name]);
    assert_eq!(causes(closed, Faults::LOSS), [BY_LOSS.name]);
    assert_eq!(causes(closed, Faults::FAILOVER), [BY_LOSS.name]);
    assert_eq!(causes(closed, Faults::RETENTION), [BY_RETENTION.name]);
    for faults in Faults::NETWORK {
        assert!(causes(closed, faults).is_empty());
        assert_eq!(causes(Rules::engine(), faults), [BY_FAIL_OPEN.name]);
    }
}

/// The shortest way to each kind of double run.
#[test]
fn each_cause_has_its_shortest_trace() {
    let closed = Rules::engine().closed();
    let same = Cast::SAME;
    reaches(closed, Faults::CRASH, same, &BY_CRASH, 9);
    reaches(closed, Faults::PAUSE, same, &BY_PAUSE, 7);
    reaches(closed, Faults::LOSS, same, &BY_LOSS, 7);
    reaches(closed, Faults::FAILOVER, same, &BY_LOSS, 7);
    reaches(closed, Faults::RETENTION, same, &BY_RETENTION, 8);
    let unreachable = Faults::UNREACHABLE;
    reaches(Rules::engine(), unreachable, same, &BY_FAIL_OPEN, 7);
}

/// S5 with a lost lease: the first success wins, and every client gets it.
#[test]
fn a_lost_lease_costs_a_run_but_never_a_second_answer() {
    let questions = [S5_DISAGREE, S5_REPLAYS_DISAGREE];
    for rules in open_and_closed() {
        for faults in [Faults::CRASH, Faults::PAUSE, Faults::PAUSE_CRASH] {
            never(rules, faults, &questions);
        }
    }
    // Two lost leases, and another body's record stands when both runs end: the one case left.
    never_among(&[Cast::SAME], Rules::engine(), TWO_PAUSES, &questions);
    reaches(Rules::engine(), TWO_PAUSES, Cast::MIXED, &S5_DISAGREE, 14);
}

/// S5: how two clients can still hold different answers. Each takes a record that the store lost, or a report that
/// failed and was answered before a lease was lost too.
#[test]
fn where_two_clients_can_still_disagree() {
    let closed = Rules::engine().closed();
    for (faults, length) in [
        (Faults::LOSS, 9),
        (Faults::FAILOVER, 11),
        (Faults::PAUSE_UNREACHABLE, 9),
    ] {
        reaches(closed, faults, Cast::SAME, &S5_DISAGREE, length);
    }
}

/// A1 to A5 and S7: the double runs and wrong answers that a better protocol avoids are gone, also where the store fails
/// and requests run unguarded. The plain design has each of them.
#[test]
fn nothing_avoidable_is_left() {
    for rules in open_and_closed() {
        for faults in Faults::MATRIX {
            never(rules, faults, &AVOIDABLE);
        }
    }
    let (plain, same) = (Rules::plain(), Cast::SAME);
    reaches(plain, Faults::PAUSE, same, &A1_AFTER_TOLD, 11);
    reaches(plain, Faults::LOSS, same, &A2_AFTER_RENEWAL, 6);
    reaches(plain, Faults::UNREACHABLE, same, &A3_AFTER_BUSY, 9);
    reaches(plain, Faults::UNREACHABLE, same, &A4_IN_REPLICA, 5);
    reaches(plain, Faults::UNREACHABLE, same, &A5_UNREPORTED, 6);
    reaches(plain, Faults::PAUSE, same, &S7_FAILED_BESIDE, 9);
}

/// L1: a crash blocks the key for one lease; only a renew still under way can add to it.
#[test]
fn a_crash_frees_the_key_within_the_lease() {
    let questions = [L1_BLOCKED, L1_STUCK];
    never(Rules::engine(), Faults::CRASH, &questions);
    never(Rules::engine(), Faults::PAUSE_CRASH, &questions);
    let late = Faults::LATE_CRASH;
    reaches(Rules::engine(), late, Cast::SAME, &L1_BLOCKED, 7);
}

/// S3: another body runs over the first only unguarded, and never beside it, where the replica itself knows.
#[test]
fn another_body_runs_over_the_first_only_unguarded() {
    for faults in Faults::MATRIX {
        never(Rules::engine().closed(), faults, &[S3_RAN_OVER]);
    }
    let unreachable = Faults::UNREACHABLE;
    reaches(Rules::engine(), unreachable, Cast::MIXED, &S3_RAN_OVER, 5);
    let once = Faults {
        unreachable: 1,
        ..Faults::NONE
    };
    never_among(&[Cast::TWO_BODIES], Rules::engine(), once, &[S3_RAN_OVER]);
}

/// The claim of a request that ended without success does not keep the key: a refused request frees what it took.
#[test]
fn no_orphan_claims() {
    for faults in [
        Faults::REPLY_LOST,
        Faults::UNREACHABLE,
        Faults::PAUSE,
        Faults::LOSS,
    ] {
        never(Rules::engine().closed(), faults, &[ORPHAN]);
    }
    // A renew carried out after the release; in order (rule 12), none.
    let late = Faults::LATE_CRASH;
    reaches(Rules::engine(), late, Cast::SAME, &ORPHAN, 6);
    never(Rules::engine().with(Rule::InOrder), late, &[ORPHAN]);
    // A failover that undoes a release.
    reaches(Rules::engine(), Faults::FAILOVER, Cast::SAME, &ORPHAN, 5);
}

/// R1: the tries of a complete end with the retention, so that only one already under way can bring a record back. A
/// complete that stores over nothing is what makes that possible.
#[test]
fn only_a_late_complete_brings_a_record_back() {
    let with_retention = |faults| Faults {
        retention: 1,
        ..faults
    };
    let closed = Rules::engine().closed();
    for faults in [Faults::REPLY_LOST, Faults::UNREACHABLE, Faults::PAUSE] {
        never(closed, with_retention(faults), &[R1_RESURRECTED]);
    }
    let late = with_retention(Faults::LATE);
    reaches(closed, late, Cast::SAME, &R1_RESURRECTED, 8);
    never(closed.completing(Complete::Strict), late, &[R1_RESURRECTED]);
}

/// "Outcome unknown" (rule 13) instead of a second run: no lost lease leads to a double run; a dead holder's key stays shut.
#[test]
fn unknown_outcomes_trade_availability_for_one_run() {
    let questions = [
        S1_TWO_SUCCESSES,
        S2_WRONG_REPLAY,
        S4_TOUCHED,
        S5_DISAGREE,
        L2_UNANSWERED,
    ];
    for faults in [
        Faults::CRASH,
        Faults::PAUSE,
        Faults::PAUSE_CRASH,
        Faults::PAUSE_UNREACHABLE,
        Faults::LATE_CRASH,
        TWO_PAUSES,
    ] {
        never(with_unknown(), faults, &questions);
    }
    reaches(with_unknown(), Faults::CRASH, Cast::SAME, &L1_STUCK, 8);
    never(with_unknown(), Faults::PAUSE, &[L1_STUCK]);
}

/// T1: a renew or a claim that lands after the release tells of an unknown outcome that is known; in order, none does.
#[test]
fn unknown_outcomes_need_commands_in_order() {
    let (rules, late, same) = (with_unknown(), Faults::LATE_CRASH, Cast::SAME);
    reaches(rules, late, same, &T1_FALSE_UNKNOWN, 10);
    let unrestored = rules.without(Rule::RenewRestores);
    reaches(unrestored, late, same, &T1_FALSE_UNKNOWN, 11);
    never(rules.with(Rule::InOrder), late, &[T1_FALSE_UNKNOWN]);
    // A failover that undoes a release is beyond any order.
    let failover = Faults::FAILOVER;
    reaches(rules, failover, same, &T1_FALSE_UNKNOWN, 9);
}

fn all_promises() -> Vec<Question<Protocol>> {
    let mut all = vec![S1_TWO_SUCCESSES, S3_RAN_OVER, S4_CONVERTED];
    all.extend([S5_DISAGREE, S5_REPLAYS_DISAGREE, L1_BLOCKED, ORPHAN]);
    all.extend(ALWAYS);
    all.extend(AVOIDABLE);
    all
}

/// The store inside the process: every promise holds, and a crash or an evicted record is the only way to a second run.
#[test]
fn in_one_process() {
    let rules = Rules::embedded();
    let casts = [Cast::PROCESS, Cast::PROCESS_OF_FOUR];
    never_among(&casts, rules, Faults::NONE, &all_promises());
    // Without a lease, a pause takes nothing away.
    never_among(&casts, rules, Faults::PAUSE, &all_promises());
    reaches(rules, Faults::CRASH, Cast::PROCESS, &BY_CRASH, 7);
    reaches(rules, Faults::RETENTION, Cast::PROCESS, &BY_RETENTION, 8);
    let even_then = [
        S2_WRONG_REPLAY,
        S3_RAN_OVER,
        S6_UNEXPLAINED,
        L1_STUCK,
        L2_UNANSWERED,
    ];
    for faults in [Faults::CRASH, Faults::RETENTION] {
        never_among(&[Cast::PROCESS], rules, faults, &even_then);
    }
}
