//! Every metric, its labels and when it moves. The facade is [`metrics`](::metrics); without a
//! recorder all of this costs next to nothing.

use std::{ptr, sync::OnceLock, thread, time::Duration};

use ::metrics::{
    Counter, Gauge, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

/// What a command to the store was for, as the label `operation` of `idempotency.degraded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Claim,
    Complete,
    Renew,
    Release,
    /// Of the cache of a `LockedStore`.
    Read,
    /// Of the cache of a `LockedStore`.
    Write,
    /// Of a lock: taken, renewed or released.
    Lock,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Complete => "complete",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Read => "read",
            Self::Write => "write",
            Self::Lock => "lock",
        }
    }
}

/// Registers units and help texts with the recorder that is installed by now.
pub(crate) fn describe() {
    describe_counter!(
        "idempotency.executed",
        "Handler runs of requests with a key"
    );
    describe_counter!("idempotency.replayed", "Requests answered from a record");
    describe_counter!(
        "idempotency.conflict",
        "Requests refused because of what stands at their key"
    );
    describe_counter!(
        "idempotency.degraded",
        "Commands that the store failed to carry out"
    );
    describe_counter!(
        "idempotency.unreplayable",
        "Successful responses recorded without their body"
    );
    describe_counter!(
        "idempotency.evicted",
        "Records dropped before their retention was over"
    );
    describe_counter!(
        "idempotency.double_effect",
        "Runs that took effect beside another run of the key"
    );
    describe_counter!(
        "idempotency.lease_lost",
        "Claims that were lost while their handler ran"
    );
    describe_histogram!(
        "idempotency.wait",
        Unit::Seconds,
        "How long a duplicate waited for the first run"
    );
    describe_gauge!(
        "idempotency.in_flight",
        "Handler runs in progress, attached and detached"
    );
    describe_gauge!(
        "idempotency.stored_bytes",
        Unit::Bytes,
        "Bytes held by the embedded store"
    );
    describe_gauge!(
        "idempotency.effective_retention",
        Unit::Seconds,
        "How long records really live in the embedded store, once it evicts"
    );
    // An alert on the increase of a counter sees nothing of one that begins at 1.
    drop(counter!("idempotency.double_effect"));
    drop(counter!("idempotency.lease_lost"));
    drop(counter!("idempotency.evicted"));
    begin_at_zero(&[
        Operation::Claim,
        Operation::Complete,
        Operation::Renew,
        Operation::Release,
    ]);
}

/// Shows the recorder that is installed by now that none of these has failed yet.
pub(crate) fn begin_at_zero(operations: &[Operation]) {
    for operation in operations {
        drop(counter!("idempotency.degraded", "operation" => operation.as_str()));
    }
}

/// The metrics that move with every request. Looking them up in a recorder costs more than moving
/// them, so the handles of the global recorder are kept.
#[derive(Default)]
pub(crate) struct Hot(OnceLock<Handles>);

struct Handles {
    recorder: usize,
    executed: Counter,
    replayed: Counter,
    in_flight: Gauge,
}

impl Handles {
    fn of_current_recorder() -> Self {
        Self {
            recorder: current_recorder(),
            executed: counter!("idempotency.executed"),
            replayed: counter!("idempotency.replayed"),
            in_flight: gauge!("idempotency.in_flight"),
        }
    }
}

fn current_recorder() -> usize {
    ::metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr())
}

/// Handles of the recorder that every thread sees. A local one belongs to a test, and another may
/// stand at its address later.
fn global_handles() -> Handles {
    let nobody = Handles {
        recorder: 0,
        executed: Counter::noop(),
        replayed: Counter::noop(),
        in_flight: Gauge::noop(),
    };
    let elsewhere = thread::Builder::new().spawn(Handles::of_current_recorder);
    let handles = elsewhere.ok().and_then(|thread| thread.join().ok());
    handles.unwrap_or(nobody)
}

impl Hot {
    fn with(&self, move_them: impl FnOnce(&Handles)) {
        let kept = self.0.get_or_init(global_handles);
        if kept.recorder == current_recorder() {
            move_them(kept);
        } else {
            move_them(&Handles::of_current_recorder());
        }
    }

    pub(crate) fn run_begins(&self) {
        self.with(|handles| {
            handles.executed.increment(1);
            handles.in_flight.increment(1);
        });
    }

    pub(crate) fn run_ends(&self) {
        self.with(|handles| handles.in_flight.decrement(1));
    }

    pub(crate) fn replayed(&self) {
        self.with(|handles| handles.replayed.increment(1));
    }
}

pub(crate) fn conflict(kind: &'static str) {
    counter!("idempotency.conflict", "kind" => kind).increment(1);
}

pub(crate) fn degraded(operation: Operation) {
    counter!("idempotency.degraded", "operation" => operation.as_str()).increment(1);
}

pub(crate) fn unreplayable(reason: &'static str) {
    counter!("idempotency.unreplayable", "reason" => reason).increment(1);
}

pub(crate) fn evicted(records: u64) {
    counter!("idempotency.evicted").increment(records);
}

pub(crate) fn double_effect() {
    counter!("idempotency.double_effect").increment(1);
}

pub(crate) fn lease_lost() {
    counter!("idempotency.lease_lost").increment(1);
}

pub(crate) fn waited(time: Duration) {
    histogram!("idempotency.wait").record(time);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; 2^53 bytes are exact enough"
)]
pub(crate) fn stored_bytes(bytes: usize) {
    gauge!("idempotency.stored_bytes").set(bytes as f64);
}

pub(crate) fn effective_retention(age: Duration) {
    gauge!("idempotency.effective_retention").set(age.as_secs_f64());
}
