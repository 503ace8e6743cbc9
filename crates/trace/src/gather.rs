//! Reassembling records from columns, including hostile ones.

use std::ops::Range;

use proctrace_wire::layout::Head;

use crate::columns::{Column, value};

/// Records of a shape whose fixed parts are reassembled at a time: so few that these stay in the fastest cache while
/// one column after the other is written to them. Few in tests, whose records fit in one round otherwise.
const ROWS: usize = if cfg!(test) { 4 } else { 64 };

/// Reassembles the records of one block after another, reusing memory.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    shapes: Vec<Shape>,
    /// The columns of all shapes, one shape after the other.
    columns: Vec<Placed>,
    /// Number of records of each shape.
    counts: Vec<usize>,
    /// The fixed parts of the next records of each shape.
    rows: Vec<u8>,
}

impl Gather {
    /// Appends the records in these columns to `raw`, which is empty. None unless they have exactly
    /// `raw_bytes` bytes; never allocates more than a few times that, and 4 MB for where the columns are: 255 of
    /// each of 255 shapes.
    pub(crate) fn gather(
        &mut self,
        columns: &[u8],
        raw_bytes: usize,
        raw: &mut Vec<u8>,
    ) -> Option<()> {
        let mut input = Input { all: columns, at: 0 };
        let records = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
        let order = input.take(usize::try_from(records).ok()?)?;
        self.counts.clear();
        self.counts.resize(usize::from(input.byte()?), 0);
        for shape in order {
            *self.counts.get_mut(usize::from(*shape))? += 1;
        }
        self.shapes.clear();
        self.columns.clear();
        let (mut fixed_bytes, mut at) = (0_usize, 0);
        for count in &self.counts {
            let shape = Shape::read(&mut input, *count, at, &mut self.columns)?;
            fixed_bytes = fixed_bytes.checked_add(count.checked_mul(shape.row_bytes)?)?;
            if fixed_bytes > raw_bytes {
                return None;
            }
            at += shape.row_bytes * ROWS.min(*count);
            self.shapes.push(shape);
        }
        // Data of an earlier block needs no clearing: columns fill every byte of a row.
        if self.rows.len() < at {
            self.rows.resize(at, 0);
        }

        raw.reserve(raw_bytes);
        for shape in order {
            let shape = &mut self.shapes[usize::from(*shape)];
            if shape.next == shape.end {
                shape.refill(&mut self.columns, columns, &mut self.rows)?;
            }
            let row = &self.rows[shape.next..shape.next + shape.row_bytes];
            shape.next += shape.row_bytes;
            let size = usize::from(u16::from_le_bytes([row[2], row[3]]));
            if size > raw_bytes - raw.len() {
                return None;
            }
            raw.extend_from_slice(row);
            let tail = size.checked_sub(row.len())?;
            if tail > 0 {
                raw.extend_from_slice(input.take(tail)?);
            }
        }
        (input.at == columns.len() && raw.len() == raw_bytes).then_some(())
    }
}

/// The records of one shape.
#[derive(Debug)]
struct Shape {
    /// Its columns among those of all shapes.
    columns: Range<usize>,
    count: usize,
    /// Number of those whose fixed part was reassembled.
    made: usize,
    /// Size of a row, at least the size of a head.
    row_bytes: usize,
    /// Offset of its rows, of the next one, and of the end of those that were reassembled.
    begin: usize,
    next: usize,
    end: usize,
}

/// A column, and its position in the rows.
#[derive(Debug)]
struct Placed {
    column: Column,
    offset: usize,
    /// Its bytes in the block.
    bytes: Range<usize>,
    /// Value before the next, for numbers stored as differences.
    before: Option<u64>,
}

impl Shape {
    /// Reads where the columns of a shape are; its rows will begin at `begin`.
    fn read(
        input: &mut Input<'_>,
        count: usize,
        begin: usize,
        columns: &mut Vec<Placed>,
    ) -> Option<Self> {
        let first = columns.len();
        let mut row_bytes = 0;
        for _ in 0..input.byte()? {
            let column = Column::from_head(input.byte()?)?;
            let before = match column {
                Column::Numbers { width, differences: true, .. } => {
                    Some(number(input.take(width)?))
                }
                _ => None,
            };
            let from = input.at;
            input.take(count.checked_mul(column.told())?)?;
            columns.push(Placed { column, offset: row_bytes, bytes: from..input.at, before });
            row_bytes += column.width();
        }
        if count == 0 || row_bytes < size_of::<Head>() {
            return None;
        }
        let (columns, next, end) = (first..columns.len(), begin, begin);
        Some(Self { columns, count, made: 0, row_bytes, begin, next, end })
    }

    /// Reassembles the next rows.
    fn refill(&mut self, columns: &mut [Placed], block: &[u8], rows: &mut [u8]) -> Option<()> {
        let Self { count, made, row_bytes, begin, .. } = *self;
        let more = (count - made).min(ROWS);
        self.end = begin + more * row_bytes;
        self.next = begin;
        self.made += more;
        let rows = rows.get_mut(begin..self.end).filter(|rows| !rows.is_empty())?;
        for Placed { column, offset, bytes, before } in columns.get_mut(self.columns.clone())? {
            let bytes = block.get(bytes.clone())?;
            match *column {
                Column::Verbatim { width: 0 } => {}
                Column::Verbatim { width: 16 } => {
                    copy::<16>(&bytes[made * 16..], *offset, rows, row_bytes);
                }
                Column::Verbatim { width } => {
                    let values = bytes[made * width..].chunks_exact(width);
                    for (row, value) in rows.chunks_exact_mut(row_bytes).zip(values) {
                        row[*offset..*offset + width].copy_from_slice(value);
                    }
                }
                Column::Numbers { width, planes, .. } => {
                    let put =
                        Put { bytes, count, made, before: *before, row_bytes, offset: *offset };
                    *before = match width {
                        1 => put.planes::<1>(planes, rows),
                        2 => put.planes::<2>(planes, rows),
                        4 => put.planes::<4>(planes, rows),
                        _ => put.planes::<8>(planes, rows),
                    };
                }
            }
        }
        Some(())
    }
}

/// Copies fields of `W` bytes: the name of a task has 16.
fn copy<const W: usize>(values: &[u8], offset: usize, rows: &mut [u8], row_bytes: usize) {
    let (values, _) = values.as_chunks::<W>();
    for (row, value) in rows.chunks_exact_mut(row_bytes).zip(values) {
        row[offset..offset + W].copy_from_slice(value);
    }
}

/// The next numbers of a column.
#[derive(Clone, Copy)]
struct Put<'a> {
    /// The lowest bytes of all values, then the next ones.
    bytes: &'a [u8],
    /// Number of values, and of those that were put before.
    count: usize,
    made: usize,
    /// Value before the next, for numbers stored as differences.
    before: Option<u64>,
    row_bytes: usize,
    offset: usize,
}

impl Put<'_> {
    /// Makes the number of planes a constant: the innermost loop dominates the time of reading a
    /// trace. Returns the value before the next.
    fn planes<const W: usize>(self, planes: usize, rows: &mut [u8]) -> Option<u64> {
        match planes {
            0 => self.put::<W, 0>(rows),
            1 => self.put::<W, 1>(rows),
            2 => self.put::<W, 2>(rows),
            3 => self.put::<W, 3>(rows),
            4 => self.put::<W, 4>(rows),
            5 => self.put::<W, 5>(rows),
            6 => self.put::<W, 6>(rows),
            7 => self.put::<W, 7>(rows),
            _ => self.put::<W, 8>(rows),
        }
    }

    fn put<const W: usize, const P: usize>(self, rows: &mut [u8]) -> Option<u64> {
        let Self { bytes, count, made, before, row_bytes, offset } = self;
        let more = rows.len() / row_bytes;
        let planes: [&[u8]; P] = std::array::from_fn(|plane| {
            bytes
                .get(plane * count + made..)
                .and_then(|bytes| bytes.get(..more))
                .unwrap_or_default()
        });
        let told = |row: usize| {
            planes
                .iter()
                .enumerate()
                .fold(0, |told, (plane, bytes)| told | (u64::from(bytes[row]) << (8 * plane)))
        };
        let fields = rows.chunks_exact_mut(row_bytes).map(|row| &mut row[offset..offset + W]);
        match before {
            Some(mut before) => {
                for (at, field) in fields.enumerate().take(more) {
                    before = value(told(at), before);
                    field.copy_from_slice(&before.to_le_bytes()[..W]);
                }
                Some(before)
            }
            None => {
                for (at, field) in fields.enumerate().take(more) {
                    field.copy_from_slice(&told(at).to_le_bytes()[..W]);
                }
                None
            }
        }
    }
}

/// A number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// A block, read up to `at`.
struct Input<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.all.get(self.at..self.at.checked_add(bytes)?)?;
        self.at += bytes;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of records of one shape, each with its head and bytes.
    fn columns(records: u32, all: &[&[u8]]) -> Vec<u8> {
        let order = vec![0; records as usize];
        let mut bytes = [&records.to_le_bytes()[..], &order, &[1, all.len() as u8]].concat();
        all.iter().for_each(|column| bytes.extend_from_slice(column));
        bytes
    }

    fn gathered(columns: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
        let mut raw = Vec::new();
        Gather::default().gather(columns, raw_bytes, &mut raw).map(|()| raw)
    }

    #[test]
    fn a_number_may_have_one_byte() {
        // Two records of a head and a number, which is at the end: kind, size, twelve bytes, and the number.
        let (kind, size) = ([130, 3, 0, 3, 0], [130, 17, 0, 17, 0]);
        let (middle, number) = ([&[128 + 12][..], &[5; 24]].concat(), [1, 7, 9]);
        let all = columns(2, &[&kind, &size, &middle, &number]);
        let record = |number: u8| [&[3, 0, 17, 0][..], &[5; 12], &[number]].concat();
        assert_eq!(gathered(&all, 34), Some([record(7), record(9)].concat()));
        assert_eq!(gathered(&all, 33), None);
        assert_eq!(gathered(&all, 35), None);
    }

    #[test]
    fn a_record_has_a_head() {
        assert_eq!(gathered(&columns(1, &[&[130, 16, 0]]), 2), None);
        assert_eq!(gathered(&columns(1, &[]), 0), None);
        // Records of no shape.
        let head = [&[128 + 16][..], &[0; 16]].concat();
        assert_eq!(gathered(&columns(0, &[&head[..1]]), 0), None);
    }
}
