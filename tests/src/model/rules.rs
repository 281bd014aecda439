//! The rules that the engine keeps, as switches, and the mistakes an implementation could make.

use super::flags::{Flag, Flags};

/// The rules of the protocol, numbered from 1. Each closes a way to run twice or to answer two clients differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Rule 1: one token a request, for all its commands; a claim that finds its own token has acquired.
    OneToken = 1,
    /// Rule 2: complete stores over its own claim, over nothing and over anybody's claim, never over a record; without
    /// the rule it does what [`Complete`] says.
    FirstSuccess,
    /// Rule 3: where complete or release finds another's record of the same request, that record is the answer, also
    /// when the own run failed.
    AnswerFromRecord,
    /// Rule 4: renew puts the claim back where nothing stands. Its other half, that renew never takes a claim or record
    /// and release frees only the own claim, is broken by [`Mistake::RenewTakesAny`] and [`Mistake::ReleaseFreesAny`].
    RenewRestores,
    /// Rule 5: a report is never given up while the process lives: the client is answered, the tries go on until the
    /// report is carried out or the retention is over. That they end is broken by [`Mistake::ReportOutlivesRetention`].
    ReportKept,
    /// Rule 6: a token reports once, so that release is never sent because complete failed. Its other half, that a
    /// failure is never completed, is broken by [`Mistake::CompleteAfterFailure`].
    ReportOnce,
    /// Rule 7: a request that has seen another's claim never runs unguarded; it is answered 409.
    SeenStaysGuarded,
    /// Rule 8: fail-open is once a process: an unguarded request first asks what its own process runs or remembers.
    OncePerProcess,
    /// Rule 9: an unguarded run reports like any other.
    UnguardedReports,
    /// Rule 10: an answer without a run sends a release behind its claim, in case that claim lands after all.
    RefusalReleases,
    /// Rule 11: a waiter claims again before it runs; being woken is only a hint.
    ClaimAgain,
    /// Rule 12: the commands of one request reach the store in the order in which they were sent.
    InOrder,
    /// Rule 13, optional: a lapsed claim stays and is answered "outcome unknown" instead of letting a retry run.
    UnknownOutcome,
}

impl Flag for Rule {
    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// Where complete stores when it does not keep [`Rule::FirstSuccess`], besides over its own claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Complete {
    /// Nowhere.
    Strict,
    /// Where nothing stands any more.
    Adopt,
    /// There, and over the claim of a duplicate.
    OverDuplicate,
}

/// What a request does that cannot claim because the store fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outage {
    /// It is refused with 503.
    Closed,
    /// It runs unguarded.
    Open,
}

/// A mistake an implementation could make, to see that the properties notice it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Release frees whatever claim stands.
    ReleaseFreesAny,
    /// Renew makes whatever claim stands its own.
    RenewTakesAny,
    /// Complete stores over another's record.
    CompleteOverRecord,
    /// Claim does not compare fingerprints.
    ClaimIgnoresBody,
    /// A run that failed is completed.
    CompleteAfterFailure,
    /// A waiter waits for ever.
    WaitForEver,
    /// Complete is tried again when the retention of what it stored is over.
    ReportOutlivesRetention,
}

/// One design.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    kept: Flags<Rule>,
    /// What complete does without [`Rule::FirstSuccess`].
    pub complete: Complete,
    /// What a request does that cannot claim.
    pub outage: Outage,
    /// Whether the store is the process: a crash takes the records with it, and a claim has no lease.
    pub embedded: bool,
    /// What is wrong with the implementation.
    pub mistake: Option<Mistake>,
}

impl Rules {
    /// What the engine does by default: rules 1 to 11, fail-open. Nothing here leans on the order of commands (rule 12).
    #[must_use]
    pub fn engine() -> Self {
        Self {
            kept: Flags::of(&[
                Rule::OneToken,
                Rule::FirstSuccess,
                Rule::AnswerFromRecord,
                Rule::RenewRestores,
                Rule::ReportKept,
                Rule::ReportOnce,
                Rule::SeenStaysGuarded,
                Rule::OncePerProcess,
                Rule::UnguardedReports,
                Rule::RefusalReleases,
                Rule::ClaimAgain,
            ]),
            ..Self::plain()
        }
    }

    /// The protocol as one would first write it: fenced by token, adopting, fail-open, and nothing more.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            kept: Flags::of(&[Rule::OneToken, Rule::ReportOnce, Rule::ClaimAgain]),
            complete: Complete::Adopt,
            outage: Outage::Open,
            embedded: false,
            mistake: None,
        }
    }

    /// The engine on a store inside its process: no lease, no network, and a crash takes the records along.
    #[must_use]
    pub fn embedded() -> Self {
        Self {
            embedded: true,
            ..Self::engine().closed()
        }
    }

    /// The same design, fail-closed.
    #[must_use]
    pub fn closed(self) -> Self {
        Self {
            outage: Outage::Closed,
            ..self
        }
    }

    /// The same design with `rule`.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.kept.set(rule, true);
        self
    }

    /// The same design without `rule`.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.kept.set(rule, false);
        self
    }

    /// The same design with this choice in place of [`Rule::FirstSuccess`].
    #[must_use]
    pub fn completing(self, complete: Complete) -> Self {
        Self {
            complete,
            ..self.without(Rule::FirstSuccess)
        }
    }

    /// The same design, wrongly implemented.
    #[must_use]
    pub fn mistaken(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    /// Whether the design keeps `rule`.
    #[must_use]
    pub fn keep(&self, rule: Rule) -> bool {
        self.kept.has(rule)
    }

    /// Whether the implementation makes this mistake.
    #[must_use]
    pub fn make(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}
