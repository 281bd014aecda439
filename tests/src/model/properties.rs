//! What the protocol promises. Every question is a *hit*: a broken promise, or a situation worth knowing.

use super::cast::Id;
use super::explore::Question;
use super::protocol::Protocol;
use super::request::{Answer, Cause, Mark, Phase};
use super::state::{Breach, LEASE, Slot, State};

type Q = Question<Protocol>;

fn successes(p: &Protocol, s: &State) -> usize {
    p.cast
        .everyone()
        .filter(|&i| s[i].has(Mark::Effect))
        .count()
}

/// The run whose response this client holds.
fn source(s: &State, i: Id) -> Option<Id> {
    match s[i].answer {
        Answer::Own => Some(i),
        Answer::Replay(by) => Some(by),
        Answer::None
        | Answer::Failed
        | Answer::Busy
        | Answer::Unknown
        | Answer::Mismatch
        | Answer::Unavailable => None,
    }
}

fn answered(p: &Protocol, s: &State, answer: Answer) -> bool {
    p.cast.everyone().any(|i| s[i].answer == answer)
}

/// Every two requests with the same body.
fn pairs(p: &Protocol) -> impl Iterator<Item = (Id, Id)> {
    let cast = p.cast;
    cast.everyone()
        .flat_map(move |i| cast.others(i).map(move |j| (i, j)))
        .filter(move |&(i, j)| cast.same_request(i, j))
}

fn double_run_by(p: &Protocol, s: &State, cause: Cause) -> bool {
    pairs(p).any(|(i, j)| s[i].has(Mark::Effect) && s[j].has(Mark::Effect) && s[i].why == cause)
}

/// A request that is over, whose replica lives, and that left no effect.
fn over_without_effect(s: &State, i: Id) -> bool {
    matches!(s[i].phase, Phase::Idle | Phase::Finished) && !s[i].has(Mark::Effect)
}

macro_rules! questions {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $hit:expr;)*) => {
        $($(#[$doc])* pub const $constant: Q = Q { name: $name, hit: $hit };)*
    };
}

questions! {
    /// S1: at most one success for a key.
    S1_TWO_SUCCESSES = "S1 two successful runs for one key",
        |p, s, _| successes(p, s) > 1;

    /// S2: a replay is of a successful run of the same request.
    S2_WRONG_REPLAY = "S2 a replay of a run that failed or of another request",
        |p, s, _| p.cast.everyone().any(|i| {
            source(s, i).is_some_and(|run| !s[run].has(Mark::Effect) || !p.cast.same_request(i, run))
        });

    /// S3: another body never runs over a standing claim or record.
    S3_RAN_OVER = "S3 ran while a claim or record of another body stood",
        |_, s, _| s.breaches.has(Breach::RanOverOtherBody);

    /// S4: nobody changes what another put there (a claim into a record apart).
    S4_TOUCHED = "S4 overwrote or freed another's claim or record",
        |_, s, _| s.breaches.has(Breach::TouchedAnothers);

    /// S4 in full: not even a claim is turned into a record.
    S4_CONVERTED = "S4 turned another's claim into a record",
        |_, s, _| s.breaches.has(Breach::Converted);

    /// S5: all clients of one request hold the same success.
    S5_DISAGREE = "S5 two clients hold different successes",
        |p, s, _| pairs(p).any(|(i, j)| {
            matches!((source(s, i), source(s, j)), (Some(a), Some(b)) if a != b)
        });

    /// S5 for retries alone.
    S5_REPLAYS_DISAGREE = "S5 two replays differ",
        |p, s, _| pairs(p).any(|(i, j)| {
            matches!((s[i].answer, s[j].answer), (Answer::Replay(a), Answer::Replay(b)) if a != b)
        });

    /// S6: every second run has a cause.
    S6_UNEXPLAINED = "S6 a second run without a cause",
        |_, s, _| s.breaches.has(Breach::Unexplained);

    /// S7: a failure is not answered while a success of the same request stands.
    S7_FAILED_BESIDE = "S7 a failure answered while a success of the same request stands",
        |_, s, _| s.breaches.has(Breach::FailedBesideSuccess);

    /// L1: a crash frees the key within a lease.
    L1_BLOCKED = "L1 a claim outlives its holder by more than a lease",
        |_, s, _| s.orphan_ticks >= LEASE && matches!(s.slot, Slot::Claim { left: 1.., .. });

    /// L1: no claim stands when all is over.
    L1_STUCK = "L1 everything is over and a claim stands",
        |_, s, last| last && s.slot.claimant().is_some();

    /// L2: everyone living is answered.
    L2_UNANSWERED = "L2 everything is over and a living request has no answer",
        |p, s, last| last && p.cast.everyone().any(|i| {
            s[i].phase != Phase::Dead && (s[i].phase != Phase::Finished || s[i].answer == Answer::None)
        });

    /// Avoidable: the store had been told of a success and kept nothing, then it ran again.
    A1_AFTER_TOLD = "A1 ran although the store had been told of a success",
        |_, s, _| s.breaches.has(Breach::RanAfterTold);

    /// Avoidable: the first run was alive and had renewed since its claim was lost.
    A2_AFTER_RENEWAL = "A2 ran although the living first run had renewed since",
        |_, s, _| s.breaches.has(Breach::RanAfterRenewal);

    /// Avoidable: the request itself had seen that another runs.
    A3_AFTER_BUSY = "A3 ran unguarded although it had seen another's claim",
        |_, s, _| s.breaches.has(Breach::RanAfterBusy);

    /// Avoidable: the replica itself knew.
    A4_IN_REPLICA = "A4 ran unguarded although its own replica runs or remembers it",
        |_, s, _| s.breaches.has(Breach::RanTwiceInReplica);

    /// Avoidable: the first run ended well and its end was never reported.
    A5_UNREPORTED = "A5 ran although a finished success had never been reported",
        |_, s, _| s.breaches.has(Breach::RanAfterUnreported);

    /// The claim of a finished request without success keeps the key, and nobody runs.
    ORPHAN = "orphan claim of a finished request without success",
        |p, s, _| s.slot.claimant().is_some_and(|by| over_without_effect(s, by))
            && p.cast.everyone().all(|i| s[i].phase != Phase::Running);

    /// "Outcome unknown" is told of a request that is over without an effect, so its outcome is known.
    T1_FALSE_UNKNOWN = "T1 outcome unknown stands although the outcome is known",
        |p, s, _| answered(p, s, Answer::Unknown)
            && matches!(s.slot, Slot::Claim { by, left: 0 }
                if s[by].phase == Phase::Finished && s[by].late.is_none() && !s[by].has(Mark::Effect));

    /// A complete tried again after the retention is over makes the record anew.
    R1_RESURRECTED = "R1 a record came back after its retention",
        |_, s, _| s.breaches.has(Breach::Resurrected);

    /// A second run because the holder's replica died.
    BY_CRASH = "double run: crash", |p, s, _| double_run_by(p, s, Cause::Crash);
    /// A second run because a living holder lost its lease.
    BY_PAUSE = "double run: pause", |p, s, _| double_run_by(p, s, Cause::Pause);
    /// A second run because the holder gave complete up.
    BY_UNDELIVERED = "double run: complete given up", |p, s, _| double_run_by(p, s, Cause::Undelivered);
    /// A second run because the store lost data.
    BY_LOSS = "double run: store lost data", |p, s, _| double_run_by(p, s, Cause::Loss);
    /// A second run because the retention was over.
    BY_RETENTION = "double run: retention over", |p, s, _| double_run_by(p, s, Cause::Retention);
    /// A second run because one of the two ran unguarded.
    BY_FAIL_OPEN = "double run: fail-open", |p, s, _| double_run_by(p, s, Cause::FailOpen);

    /// A replay was answered.
    REACHED_REPLAY = "reached: replay",
        |p, s, _| p.cast.everyone().any(|i| matches!(s[i].answer, Answer::Replay(_)));
    /// A waiter was told that the first is still in flight.
    REACHED_BUSY = "reached: 409 in flight", |p, s, _| answered(p, s, Answer::Busy);
    /// Another body was refused.
    REACHED_MISMATCH = "reached: 422", |p, s, _| answered(p, s, Answer::Mismatch);
    /// A request was refused for want of a store.
    REACHED_UNAVAILABLE = "reached: 503", |p, s, _| answered(p, s, Answer::Unavailable);
    /// A failed run was followed by a successful one.
    REACHED_RETRY = "reached: failure, then another run succeeds",
        |p, s, _| answered(p, s, Answer::Failed) && successes(p, s) == 1;
    /// A request was told that the outcome is unknown.
    REACHED_UNKNOWN = "reached: outcome unknown", |p, s, _| answered(p, s, Answer::Unknown);
}

/// What must hold in every design that is fenced by token, with every fault.
pub const ALWAYS: [Q; 5] = [
    S2_WRONG_REPLAY,
    S4_TOUCHED,
    S6_UNEXPLAINED,
    L1_STUCK,
    L2_UNANSWERED,
];

/// Double runs by cause.
pub const DOUBLE_RUNS: [Q; 6] = [
    BY_CRASH,
    BY_PAUSE,
    BY_UNDELIVERED,
    BY_LOSS,
    BY_RETENTION,
    BY_FAIL_OPEN,
];

/// Double runs and wrong answers that the engine's rules avoid.
pub const AVOIDABLE: [Q; 6] = [
    A1_AFTER_TOLD,
    A2_AFTER_RENEWAL,
    A3_AFTER_BUSY,
    A4_IN_REPLICA,
    A5_UNREPORTED,
    S7_FAILED_BESIDE,
];

/// Every answer that a walk with all of its parts in place can reach.
pub const REACHES: [Q; 6] = [
    REACHED_REPLAY,
    REACHED_BUSY,
    REACHED_MISMATCH,
    REACHED_UNAVAILABLE,
    REACHED_RETRY,
    REACHED_UNKNOWN,
];
