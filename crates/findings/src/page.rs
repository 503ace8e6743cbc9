//! Every process of a recording with its details, packed: the data of an interactive page.

use crate::gantt::{Lane, Strip};

/// Everything that a page needs besides the findings. Names and other strings are numbers of
/// [`PageData::strings`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageData {
    /// Length of the time axis.
    pub length_ns: u64,
    /// The strings, by number. An argument vector is one string with NUL between its arguments.
    pub strings: Vec<String>,
    /// Kinds of processes, one colour each, the one with most processes first.
    pub lanes: Vec<Lane>,
    /// The tables, each with a stable name.
    pub tables: Vec<PackedTable>,
    /// Moments that the payload named: time since the start of the recording, and name.
    pub marks: Vec<(u64, String)>,
    /// Steps of a workflow. The column `step` of the processes has positions in it; it is missing if there are none.
    pub steps: Vec<PageStep>,
    /// Bin edges of the strips, ascending; one more than there are bins.
    pub edges_ns: Vec<u64>,
    /// Activity of the whole tree over time.
    pub strips: Vec<PageStrip>,
    /// Rows left out of the tables for lack of room.
    pub left_out: Vec<LeftOut>,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStep {
    /// Its name.
    pub name: String,
    /// Row of the process with which it begins.
    pub process: u32,
    /// Position of the step that it is a part of, which comes before.
    pub parent: Option<u32>,
}

/// A quantity over time, or why it is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct PageStrip {
    /// The strip; without series if it is not known.
    pub strip: Strip,
    /// The reason it is not known.
    pub unknown: Option<String>,
}

/// A table that has only some of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its rows, in words.
    pub what: &'static str,
    /// Number of rows that it has.
    pub shown: u64,
    /// Number of rows that it would have.
    pub of: u64,
}

/// A table of whole numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedTable {
    /// A stable name.
    pub name: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// The columns.
    pub columns: Vec<PackedColumn>,
}

/// A column, in a few bytes per value: a variable-length integer (LEB128), which is 0 for a missing
/// value and otherwise the value plus one. In an ascending column it is the difference from the previous
/// value that is stored, as a zigzag integer (twice the difference, or for a negative one twice its amount
/// minus one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedColumn {
    /// A stable name that ends in its unit, if there is one.
    pub name: &'static str,
    /// True if differences are stored.
    pub ascending: bool,
    /// The reason no value is known, if that is so; then there are no bytes either.
    pub unknown: Option<String>,
    /// The values.
    pub bytes: Vec<u8>,
    last: u64,
}

impl PackedTable {
    /// A table without columns.
    pub fn new(name: &'static str, rows: usize) -> Self {
        Self { name, rows: rows as u64, columns: Vec::new() }
    }

    /// The column of that name.
    pub fn named(&self, name: &str) -> Option<&PackedColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl PackedColumn {
    /// A column of these values.
    pub fn of(name: &'static str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let mut column = Self { name, ascending: false, unknown: None, bytes: Vec::new(), last: 0 };
        values.into_iter().for_each(|value| column.push(value));
        column
    }

    /// A column of values that mostly ascend.
    pub fn ascending(name: &'static str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let mut column = Self { name, ascending: true, unknown: None, bytes: Vec::new(), last: 0 };
        values.into_iter().for_each(|value| column.push(value));
        column
    }

    /// A column none of whose values is known.
    pub fn unknown(name: &'static str, why: String) -> Self {
        Self { name, ascending: false, unknown: Some(why), bytes: Vec::new(), last: 0 }
    }

    fn push(&mut self, value: Option<u64>) {
        let Some(value) = value else { return self.bytes.push(0) };
        let stored = if self.ascending {
            let change = value.wrapping_sub(std::mem::replace(&mut self.last, value));
            let change = change.cast_signed();
            ((change << 1) ^ (change >> 63)).cast_unsigned()
        } else {
            value
        };
        let mut rest = u128::from(stored) + 1;
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// The values, unpacked.
    pub fn values(&self) -> Vec<Option<u64>> {
        let (mut values, mut bytes, mut last) = (Vec::new(), self.bytes.iter(), 0_u64);
        while let Some(first) = bytes.next() {
            let (mut stored, mut shift, mut byte) = (u128::from(first & 0x7f), 7, *first);
            while byte & 0x80 != 0 && shift < 70 {
                byte = bytes.next().copied().unwrap_or(0);
                stored |= u128::from(byte & 0x7f) << shift;
                shift += 7;
            }
            let Some(stored) = stored.checked_sub(1) else {
                values.push(None);
                continue;
            };
            let stored = stored as u64;
            let value = if self.ascending {
                let change = (stored >> 1).cast_signed() ^ -(stored & 1).cast_signed();
                last = last.wrapping_add(change.cast_unsigned());
                last
            } else {
                stored
            };
            values.push(Some(value));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unpacked_as_they_were() {
        let values = [Some(0), None, Some(127), Some(128), Some(5), Some(u64::MAX), None, Some(1)];
        assert_eq!(PackedColumn::of("a", values).values(), values);
        assert_eq!(PackedColumn::ascending("a", values).values(), values);
        let near = PackedColumn::ascending("a", (1_000_000..1_000_100).map(Some));
        assert!(near.bytes.len() < 105, "{}", near.bytes.len());
    }
}
