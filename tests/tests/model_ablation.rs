//! Each rule of the engine is needed: taken out, the answer or the run that it prevents comes back.
//!
//! And each mistake that an implementation of the protocol could make is noticed by at least one promise, so that the
//! walks of `model.rs` are known to be able to fail.

use idempotent_tests::model::cast::Cast;
use idempotent_tests::model::check::{never, reaches, walk};
use idempotent_tests::model::explore::Question;
use idempotent_tests::model::faults::Faults;
use idempotent_tests::model::properties::*;
use idempotent_tests::model::protocol::Protocol;
use idempotent_tests::model::rules::{Complete, Mistake, Rule, Rules};

const RETENTION_REPLY_LOST: Faults = Faults {
    retention: 1,
    ..Faults::REPLY_LOST
};

/// With `rule` the question is never hit under these faults; without it, it is, by a trace of `length` steps.
#[track_caller]
fn needed(rules: Rules, rule: Rule, faults: Faults, question: Question<Protocol>, length: usize) {
    let broken = rules.without(rule);
    replaced(rules, broken, faults, question, length);
}

/// In the `sound` design the question is never hit under these faults; in the `broken` one, it is.
#[track_caller]
fn replaced(
    sound: Rules,
    broken: Rules,
    faults: Faults,
    question: Question<Protocol>,
    length: usize,
) {
    let questions = [question];
    never(sound, faults, &questions);
    let [question] = questions;
    reaches(broken, faults, Cast::MIXED, &question, length);
}

/// The engine open and closed: what a rule prevents in both.
fn both() -> [Rules; 2] {
    [Rules::engine(), Rules::engine().closed()]
}

/// Rule 1, one token a request: without it a request whose claim's reply was lost waits for itself, and may for ever.
#[test]
fn rule_1_one_token() {
    for rules in both() {
        let broken = rules.without(Rule::OneToken);
        for cast in Cast::BOTH {
            assert!(walk(rules, Faults::REPLY_LOST, cast, &[]).finite);
            assert!(!walk(broken, Faults::REPLY_LOST, cast, &[]).finite);
        }
    }
}

/// Rule 2, the first success wins: without it a success that the store was told of is dropped and the handler runs again,
/// and after a lost lease two clients hold different answers.
#[test]
fn rule_2_first_success() {
    for rules in both() {
        let rule = Rule::FirstSuccess;
        for faults in [Faults::PAUSE, Faults::LOSS, Faults::FAILOVER] {
            needed(rules, rule, faults, A1_AFTER_TOLD, 11);
        }
        for faults in [Faults::PAUSE, Faults::PAUSE_CRASH] {
            needed(rules, rule, faults, S5_DISAGREE, 9);
        }
    }
}

/// Rule 2 in full: storing over nothing is not enough, and neither is storing over a duplicate's claim alone, since
/// another body may have taken the key meanwhile.
#[test]
fn rule_2_over_anybodys_claim() {
    for rules in both() {
        let strict = rules.completing(Complete::Strict);
        replaced(rules, strict, Faults::PAUSE, A1_AFTER_TOLD, 7);
        replaced(rules, strict, Faults::PAUSE, S5_DISAGREE, 9);
        let duplicates = rules.completing(Complete::OverDuplicate);
        replaced(rules, duplicates, Faults::PAUSE, A1_AFTER_TOLD, 11);
        replaced(rules, duplicates, Faults::PAUSE, S5_DISAGREE, 13);
    }
}

/// Rule 3, answer from the record: without it the run that comes second answers its own success, or its own failure
/// beside a success.
#[test]
fn rule_3_answer_from_record() {
    for rules in both() {
        let rule = Rule::AnswerFromRecord;
        for faults in [Faults::PAUSE, Faults::PAUSE_CRASH] {
            needed(rules, rule, faults, S5_DISAGREE, 9);
        }
        for faults in [Faults::PAUSE, Faults::LOSS, Faults::FAILOVER] {
            needed(rules, rule, faults, S7_FAILED_BESIDE, 9);
        }
    }
}

/// Rule 4, renew restores: without it a living run that has renewed does not get its lost claim back.
#[test]
fn rule_4_renew_restores() {
    for rules in both() {
        for faults in [Faults::PAUSE, Faults::LOSS, Faults::FAILOVER] {
            needed(rules, Rule::RenewRestores, faults, A2_AFTER_RENEWAL, 6);
        }
    }
}

/// Rule 5, a report is never given up: without it a lost packet alone makes the handler run again.
#[test]
fn rule_5_report_kept() {
    let (rule, unreachable) = (Rule::ReportKept, Faults::UNREACHABLE);
    for (rules, unreported) in both().into_iter().zip([8, 9]) {
        needed(rules, rule, unreachable, BY_UNDELIVERED, 10);
        needed(rules, rule, unreachable, A5_UNREPORTED, unreported);
        needed(rules, rule, unreachable, ORPHAN, 5);
    }
    let closed = Rules::engine().closed();
    needed(closed, rule, unreachable, S1_TWO_SUCCESSES, 10);
}

/// Rule 5, and its tries end with the retention: without that a record comes back.
#[test]
fn rule_5_ends_with_the_retention() {
    for rules in both() {
        let broken = rules.mistaken(Mistake::ReportOutlivesRetention);
        replaced(rules, broken, RETENTION_REPLY_LOST, R1_RESURRECTED, 7);
    }
}

/// Rule 6, a token reports once: a release after a success whose complete is in doubt frees the key for a second run
/// that nothing else explains, also with a complete that stores only over its own claim.
#[test]
fn rule_6_report_once() {
    for rules in both() {
        needed(
            rules,
            Rule::ReportOnce,
            Faults::UNREACHABLE,
            S6_UNEXPLAINED,
            8,
        );
        let strict = rules.completing(Complete::Strict);
        needed(
            strict,
            Rule::ReportOnce,
            Faults::UNREACHABLE,
            S6_UNEXPLAINED,
            8,
        );
    }
    let closed = Rules::engine().closed();
    needed(closed, Rule::ReportOnce, Faults::LATE, S6_UNEXPLAINED, 8);
}

/// Rule 7, who has seen another's claim never runs unguarded.
#[test]
fn rule_7_seen_stays_guarded() {
    let rules = Rules::engine();
    for faults in [Faults::REPLY_LOST, Faults::UNREACHABLE] {
        needed(rules, Rule::SeenStaysGuarded, faults, A3_AFTER_BUSY, 9);
    }
}

/// Rule 8, fail-open is once a process: without it two unguarded requests run side by side, also with two bodies.
#[test]
fn rule_8_once_per_process() {
    let rules = Rules::engine();
    let broken = rules.without(Rule::OncePerProcess);
    for faults in [Faults::REPLY_LOST, Faults::UNREACHABLE] {
        never(rules, faults, &[A4_IN_REPLICA]);
        reaches(broken, faults, Cast::SAME, &A4_IN_REPLICA, 5);
    }
    let once = Faults {
        unreachable: 1,
        ..Faults::NONE
    };
    let beside = walk(rules, once, Cast::TWO_BODIES, &[S3_RAN_OVER]);
    assert!(beside.hits.is_empty());
    reaches(broken, once, Cast::TWO_BODIES, &S3_RAN_OVER, 5);
}

/// Rule 9, an unguarded run reports: without it the store never hears of its success, nor frees its claim that landed.
#[test]
fn rule_9_unguarded_reports() {
    let (rules, rule) = (Rules::engine(), Rule::UnguardedReports);
    needed(rules, rule, Faults::UNREACHABLE, A5_UNREPORTED, 6);
    needed(rules, rule, Faults::REPLY_LOST, A5_UNREPORTED, 8);
    needed(rules, rule, Faults::REPLY_LOST, ORPHAN, 4);
}

/// Rule 10, a refusal releases: without it the claim of a request that was refused keeps the key.
#[test]
fn rule_10_refusal_releases() {
    for (rules, steps) in both().into_iter().zip([7, 3]) {
        needed(
            rules,
            Rule::RefusalReleases,
            Faults::REPLY_LOST,
            ORPHAN,
            steps,
        );
    }
}

/// Rule 11, a waiter claims again: without it the handler runs twice though nothing has gone wrong.
#[test]
fn rule_11_claim_again() {
    for rules in both() {
        needed(rules, Rule::ClaimAgain, Faults::NONE, S1_TWO_SUCCESSES, 8);
        needed(rules, Rule::ClaimAgain, Faults::NONE, S6_UNEXPLAINED, 7);
    }
}

/// Rule 12, commands in order: without it a renew that lands after the release takes the key again.
#[test]
fn rule_12_in_order() {
    let closed = Rules::engine().closed().with(Rule::InOrder);
    let late = Faults::LATE_CRASH;
    needed(closed, Rule::InOrder, late, ORPHAN, 6);
    let unknown = closed.with(Rule::UnknownOutcome);
    needed(unknown, Rule::InOrder, late, T1_FALSE_UNKNOWN, 10);
}

/// Rule 13, "outcome unknown" instead of a retry that runs: without it a crash or a lost lease can run twice.
#[test]
fn rule_13_unknown_outcome() {
    let rules = Rules::engine().closed().with(Rule::UnknownOutcome);
    let rule = Rule::UnknownOutcome;
    needed(rules, rule, Faults::CRASH, S1_TWO_SUCCESSES, 9);
    needed(rules, rule, Faults::PAUSE, S1_TWO_SUCCESSES, 7);
}

/// Each mistake of an implementation breaks a promise that holds without it.
#[test]
fn every_mistake_breaks_a_promise() {
    let plain = Faults::NONE;
    let pause = Faults::PAUSE;
    for rules in both() {
        for (mistake, faults, question, length) in [
            (Mistake::ReleaseFreesAny, plain, S4_TOUCHED, 9),
            (Mistake::ReleaseFreesAny, plain, S6_UNEXPLAINED, 7),
            (Mistake::RenewTakesAny, pause, S4_TOUCHED, 6),
            (Mistake::CompleteOverRecord, pause, S4_TOUCHED, 9),
            (Mistake::CompleteOverRecord, pause, S5_DISAGREE, 9),
            (Mistake::ClaimIgnoresBody, plain, S2_WRONG_REPLAY, 6),
            (Mistake::CompleteAfterFailure, plain, S2_WRONG_REPLAY, 4),
        ] {
            replaced(rules, rules.mistaken(mistake), faults, question, length);
        }
    }
}

/// A waiter that never gives up is noticed by the answer that nobody gets any more.
#[test]
fn a_waiter_that_never_times_out_is_noticed() {
    for rules in both() {
        for cast in Cast::BOTH {
            let busy = |rules| walk(rules, Faults::NONE, cast, &[REACHED_BUSY]).names();
            assert_eq!(busy(rules), [REACHED_BUSY.name]);
            assert!(busy(rules.mistaken(Mistake::WaitForEver)).is_empty());
        }
    }
}

/// A seventh cause of double runs, which only an engine that gives complete up has.
#[test]
fn giving_up_is_a_cause_of_its_own() {
    let broken = Rules::engine().closed().without(Rule::ReportKept);
    let walk = walk(broken, Faults::UNREACHABLE, Cast::SAME, &DOUBLE_RUNS);
    assert_eq!(walk.names(), [BY_UNDELIVERED.name]);
}
