//! What the expansion of `#[idempotent]` asks the compiler, and the words for its refusals.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;

use axum::body::{Body, BodyDataStream};
use axum::response::{IntoResponse, Redirect, Sse};

use crate::caller::Subject;

/// Fails to compile where the verdict of a [`Probe`] is a response that cannot be replayed.
pub fn require_replayable<T: Replayable>(_: PhantomData<T>) {}

/// Fails to compile where the declared return type is no response.
pub fn require_into_response<T: IntoResponse>() {}

/// Fails to compile where the handler's future cannot move between threads.
pub fn require_send<F: Future + Send>(future: F) -> F {
    future
}

/// Is there to carry the message; every response but the ones listed below is fine.
#[diagnostic::on_unimplemented(
    message = "`#[idempotent]` can't store and replay a `{Self}` response",
    label = "this response can't be replayed",
    note = "the response of an idempotent handler is stored, and sent again to a retry; redirects, event streams, raw bodies and file downloads can't be",
    note = "return the created resource, e.g. `(StatusCode, Json<T>)`, or mark the handler `#[non_idempotent(\"why\")]`"
)]
pub trait Replayable {}

/// The verdict on every other type.
#[derive(Debug)]
pub struct Replays;
#[diagnostic::do_not_recommend]
impl Replayable for Replays {}

/// A response that can never be replayed.
#[diagnostic::on_unimplemented(
    message = "this handler's response is a `{Self}`",
    label = "nothing in the body says what the response is",
    note = "`#[idempotent]` looks at the type of the response: end the body with one"
)]
pub trait NeverReplayable {
    /// The part that is to blame.
    type Culprit;
}

/// Up to the edition 2021 this is what the body `todo!()` gives, once nothing else is known of it. It can be replayed.
impl NeverReplayable for () {
    type Culprit = Replays;
}
impl NeverReplayable for Redirect {
    type Culprit = Self;
}
impl<S> NeverReplayable for Sse<S> {
    type Culprit = Self;
}
impl NeverReplayable for Body {
    type Culprit = Self;
}
impl NeverReplayable for BodyDataStream {
    type Culprit = Self;
}
impl<T: NeverReplayable, E> NeverReplayable for Result<T, E> {
    type Culprit = T::Culprit;
}

macro_rules! tuples {
    ($($part:ident)*) => {
        impl<$($part,)* T: NeverReplayable> NeverReplayable for ($($part,)* T,) {
            type Culprit = T::Culprit;
        }
    };
}
tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);

/// Asks about `T`: `(&&&Probe::<T>::NEW).__idempotent_verdict()` takes the first answer below that holds, because method look-up
/// tries fewer references first. The method's name is no trait's that an application has in scope.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    /// The question.
    pub const NEW: Self = Self(PhantomData);
}

/// The question about the type of a value.
#[must_use]
pub fn probe_of<T>(_: &T) -> Probe<T> {
    Probe::NEW
}

/// First answer: the type is known to be bad.
pub trait Never<C> {
    /// Names the part that is to blame.
    fn __idempotent_verdict(&self) -> PhantomData<C>;
}
impl<T: NeverReplayable> Never<T::Culprit> for &&Probe<T> {
    fn __idempotent_verdict(&self) -> PhantomData<T::Culprit> {
        PhantomData
    }
}

/// Second answer: the error of a result is known to be bad.
pub trait NeverErr<C> {
    /// Names the part that is to blame.
    fn __idempotent_verdict(&self) -> PhantomData<C>;
}
impl<T, E: NeverReplayable> NeverErr<E::Culprit> for &Probe<Result<T, E>> {
    fn __idempotent_verdict(&self) -> PhantomData<E::Culprit> {
        PhantomData
    }
}

/// Last answer: nothing is known against the type.
pub trait Fine {
    /// Names nobody.
    fn __idempotent_verdict(&self) -> PhantomData<Replays>;
}
impl<T> Fine for Probe<T> {
    fn __idempotent_verdict(&self) -> PhantomData<Replays> {
        PhantomData
    }
}

/// What `subject = ..` may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the `subject` of `#[idempotent]`",
    label = "this is not text",
    note = "the subject is an expression that implements `Display`, e.g. `subject = user.id`"
)]
pub trait AsSubject {
    /// The subject as text.
    fn to_subject(&self) -> String;
}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> AsSubject for T {
    fn to_subject(&self) -> String {
        self.to_string()
    }
}

/// The caller that `subject = ..` names.
pub fn subject<T: AsSubject + ?Sized>(value: &T) -> Subject {
    Subject::new(value.to_subject())
}
