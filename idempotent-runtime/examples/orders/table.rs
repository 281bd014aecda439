//! A table of a database, as far as the example needs one.

use parking_lot::Mutex;
use serde::Serialize;

/// Rows in the order of their creation, numbered from 1.
pub(crate) struct Table<T>(Mutex<Vec<T>>);

/// A row with its number.
#[derive(Clone, Serialize)]
pub(crate) struct Row<T> {
    pub(crate) id: usize,
    #[serde(flatten)]
    pub(crate) fields: T,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Table<T> {
    pub(crate) fn insert(&self, fields: T) -> Row<T> {
        let mut rows = self.0.lock();
        rows.push(fields.clone());
        Row {
            id: rows.len(),
            fields,
        }
    }

    pub(crate) fn all(&self) -> Vec<Row<T>> {
        let rows = self.0.lock();
        (1..)
            .zip(&*rows)
            .map(|(id, fields)| Row {
                id,
                fields: fields.clone(),
            })
            .collect()
    }

    pub(crate) fn find(&self, id: usize) -> Option<Row<T>> {
        let rows = self.0.lock();
        let fields = rows.get(id.checked_sub(1)?)?.clone();
        Some(Row { id, fields })
    }

    /// Changes a row; `false` where there is none of this number.
    pub(crate) fn update(&self, id: usize, change: impl FnOnce(&mut T)) -> bool {
        let mut rows = self.0.lock();
        let row = id.checked_sub(1).and_then(|index| rows.get_mut(index));
        row.map(change).is_some()
    }
}
