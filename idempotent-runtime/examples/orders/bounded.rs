//! A number that a body may only hold within bounds, so that a bad one is refused with the field's
//! name before a handler runs.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected},
};

/// From `MIN` to `MAX`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Default for Bounded<MIN, MAX> {
    fn default() -> Self {
        Self(MIN)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&number) {
            Ok(Self(number))
        } else {
            let expected = format!("a number from {MIN} to {MAX}");
            Err(D::Error::invalid_value(
                Unexpected::Unsigned(number),
                &&*expected,
            ))
        }
    }
}
