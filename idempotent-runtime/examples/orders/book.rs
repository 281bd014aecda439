//! Where orders are written down: in this process, or in a file that several copies of the program
//! share, as they would share a database.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    orders::Order,
    table::{Row, Table},
};

/// The order book.
pub(crate) enum Book {
    Memory(Table<Order>),
    File(Lines),
}

/// One JSON text a line, only ever appended to, so that copies need no lock. An order's number says
/// where its line begins: no two copies give the same.
pub(crate) struct Lines {
    path: PathBuf,
    file: Mutex<File>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Order(Order),
    /// The order of this number is cancelled.
    Cancel(usize),
}

impl Book {
    /// In this file, which may be there already, or in memory.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else {
            return Ok(Self::Memory(Table::default()));
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        Ok(Self::File(Lines {
            path: path.to_owned(),
            file: Mutex::new(file),
        }))
    }

    pub(crate) fn insert(&self, order: Order) -> io::Result<Row<Order>> {
        match self {
            Self::Memory(table) => Ok(table.insert(order)),
            Self::File(lines) => Ok(Row {
                id: lines.append(&Line::Order(order.clone()))?,
                fields: order,
            }),
        }
    }

    pub(crate) fn all(&self) -> io::Result<Vec<Row<Order>>> {
        match self {
            Self::Memory(table) => Ok(table.all()),
            Self::File(lines) => lines.orders(),
        }
    }

    pub(crate) fn find(&self, id: usize) -> io::Result<Option<Row<Order>>> {
        match self {
            Self::Memory(table) => Ok(table.find(id)),
            Self::File(lines) => {
                let mut orders = lines.orders()?.into_iter();
                Ok(orders.find(|order| order.id == id))
            }
        }
    }

    /// `false` where there is no order of this number.
    pub(crate) fn cancel(&self, id: usize) -> io::Result<bool> {
        match self {
            Self::Memory(table) => Ok(table.update(id, |order| order.cancelled = true)),
            Self::File(lines) => {
                let found = self.find(id)?.is_some();
                if found {
                    lines.append(&Line::Cancel(id))?;
                }
                Ok(found)
            }
        }
    }
}

impl Lines {
    /// Adds a line in one write, and returns its number: 1 for the first, then one more than the
    /// bytes before it.
    fn append(&self, line: &Line) -> io::Result<usize> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = self.file.lock();
        file.write_all(&text)?;
        // Where this write has ended, whatever other copies have added since.
        let end = usize::try_from(file.stream_position()?).map_err(io::Error::other)?;
        Ok(end - text.len() + 1)
    }

    fn orders(&self) -> io::Result<Vec<Row<Order>>> {
        let text = fs::read_to_string(&self.path)?;
        let mut orders: Vec<Row<Order>> = Vec::new();
        let mut id = 1;
        for line in text.split_inclusive('\n') {
            // The last line may be half written so far.
            match serde_json::from_str(line) {
                Ok(Line::Order(fields)) => orders.push(Row { id, fields }),
                Ok(Line::Cancel(of)) => {
                    let order = orders.iter_mut().find(|order| order.id == of);
                    if let Some(order) = order {
                        order.fields.cancelled = true;
                    }
                }
                Err(_) => {}
            }
            id += line.len();
        }
        Ok(orders)
    }
}
