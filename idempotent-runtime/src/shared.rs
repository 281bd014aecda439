//! What threads share without slowing each other down.

use std::{ops::Deref, sync::Arc};

/// The process-wide value, or a counted one. Counting every request of a busy process on one
/// cache line is what this avoids.
#[derive(Debug)]
pub(crate) enum Shared<T: 'static> {
    Static(&'static T),
    Counted(Arc<T>),
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Static(value) => Self::Static(value),
            Self::Counted(value) => Self::Counted(Arc::clone(value)),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Static(value) => value,
            Self::Counted(value) => value,
        }
    }
}

/// A value on cache lines of its own: what many threads write does not slow down what they read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
