//! A small set of named marks, packed into one word so that states stay small.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// A mark that can be a member of [`Flags`].
pub trait Flag: Copy {
    /// The one bit that stands for this mark.
    fn bit(self) -> u16;
}

/// A set of marks of one kind.
pub struct Flags<T> {
    bits: u16,
    kind: PhantomData<T>,
}

impl<T: Flag> Flags<T> {
    /// The set without members.
    pub const EMPTY: Self = Self {
        bits: 0,
        kind: PhantomData,
    };

    /// The set of these members.
    #[must_use]
    pub fn of(members: &[T]) -> Self {
        let bits = members.iter().fold(0, |bits, member| bits | member.bit());
        Self {
            bits,
            kind: PhantomData,
        }
    }

    /// Whether `member` is in the set.
    #[must_use]
    pub fn has(self, member: T) -> bool {
        self.bits & member.bit() != 0
    }

    /// Puts `member` in, or takes it out.
    pub fn set(&mut self, member: T, present: bool) {
        if present {
            self.bits |= member.bit();
        } else {
            self.bits &= !member.bit();
        }
    }

    /// Puts `member` in where `present`; otherwise leaves it as it is.
    pub fn note(&mut self, member: T, present: bool) {
        self.set(member, present || self.has(member));
    }
}

impl<T> Clone for Flags<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Flags<T> {}

impl<T> PartialEq for Flags<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}

impl<T> Eq for Flags<T> {}

impl<T> Hash for Flags<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits.hash(state);
    }
}

impl<T: Flag> Default for Flags<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T> fmt::Debug for Flags<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#b}", self.bits)
    }
}
