//! What things really take from the allocator, so that the byte bound holds for the process.

use std::sync::Arc;

use crate::record::{Record, RecordBody};

/// The bytes that an allocation of `size` takes: a header of eight, in steps of 16, 32 at least.
pub(super) fn allocated(size: usize) -> usize {
    match size {
        0 => 0,
        size => (size + 8).next_multiple_of(16).max(32),
    }
}

/// An allocation with the two counters of an [`Arc`].
pub(super) fn counted<T>() -> usize {
    allocated(size_of::<T>() + 2 * size_of::<usize>())
}

/// The bytes of a record outside the tables.
pub(super) fn of(record: &Arc<Record>) -> usize {
    let names_and_values: usize = record
        .headers
        .iter()
        .map(|(name, value)| allocated(name.as_str().len()) + allocated(value.len()))
        .sum();
    let body = match &record.body {
        // The first replay turns the bytes into shared ones, which adds a small allocation.
        RecordBody::Stored(body) if !body.is_empty() => allocated(body.len()) + allocated(24),
        RecordBody::Stored(_) | RecordBody::Unreplayable => 0,
    };
    counted::<Record>() + allocated(size_of_val(&*record.headers)) + names_and_values + body
}
