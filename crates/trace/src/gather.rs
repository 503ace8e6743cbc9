//! Reassembling records from columns, including hostile ones.

use proctrace_wire::layout::Head;

use crate::columns::{Column, value};

/// Reassembles the records of one block after another, reusing memory.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    shapes: Vec<Shape>,
    /// Number of records of each shape.
    counts: Vec<usize>,
    /// The fixed parts of all records, shape by shape.
    rows: Vec<u8>,
}

impl Gather {
    /// Appends the records in these columns to `raw`, which is empty. None unless they have exactly
    /// `raw_bytes` bytes; never allocates more than a few times that.
    pub(crate) fn gather(
        &mut self,
        columns: &[u8],
        raw_bytes: usize,
        raw: &mut Vec<u8>,
    ) -> Option<()> {
        let mut input = Input(columns);
        let records = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
        let order = input.take(usize::try_from(records).ok()?)?;
        self.counts.clear();
        self.counts.resize(usize::from(input.byte()?), 0);
        for shape in order {
            *self.counts.get_mut(usize::from(*shape))? += 1;
        }
        // Data of an earlier block needs no clearing: columns fill every byte of a row.
        if self.rows.len() < raw_bytes {
            self.rows.resize(raw_bytes, 0);
        }
        self.shapes.clear();
        let mut room = &mut self.rows[..raw_bytes];
        let mut at = 0;
        for count in &self.counts {
            let row_bytes = gather_shape(&mut input, *count, room)?;
            self.shapes.push(Shape { row_bytes, at });
            at += row_bytes * count;
            room = &mut room[row_bytes * count..];
        }

        raw.reserve(raw_bytes);
        for shape in order {
            let shape = &mut self.shapes[usize::from(*shape)];
            let row = &self.rows[shape.at..shape.at + shape.row_bytes];
            shape.at += shape.row_bytes;
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
        (input.0.is_empty() && raw.len() == raw_bytes).then_some(())
    }
}

/// Positions of the fixed parts of the records of one shape.
#[derive(Debug)]
struct Shape {
    /// Size of a row, at least the size of a head.
    row_bytes: usize,
    /// Offset of the next one in the rows.
    at: usize,
}

/// Reads the columns of a shape into rows at the start of `room`; returns the size of a row. None
/// if they do not fit.
fn gather_shape(input: &mut Input<'_>, count: usize, room: &mut [u8]) -> Option<usize> {
    let mut columns = [None; u8::MAX as usize];
    let columns = &mut columns[..usize::from(input.byte()?)];
    let mut row_bytes = 0;
    for place in columns.iter_mut() {
        let column = Column::from_head(input.byte()?)?;
        let first = match column {
            Column::Numbers { width, differences: true, .. } => Some(number(input.take(width)?)),
            _ => None,
        };
        row_bytes += column.width();
        *place = Some((column, first, input.take(count.checked_mul(column.told())?)?));
    }
    if count == 0 || row_bytes < size_of::<Head>() {
        return None;
    }
    let rows = room.get_mut(..count.checked_mul(row_bytes)?)?;
    let mut offset = 0;
    for (column, first, bytes) in columns.iter().copied().flatten() {
        match column {
            Column::Verbatim { width: 0 } => {}
            Column::Verbatim { width } => {
                for (row, bytes) in rows.chunks_exact_mut(row_bytes).zip(bytes.chunks_exact(width))
                {
                    row[offset..offset + width].copy_from_slice(bytes);
                }
            }
            Column::Numbers { width, planes, .. } => {
                let put = Put { bytes, count, first, row_bytes, offset };
                match width {
                    1 => put.planes::<1>(planes, rows),
                    2 => put.planes::<2>(planes, rows),
                    4 => put.planes::<4>(planes, rows),
                    _ => put.planes::<8>(planes, rows),
                }
            }
        }
        offset += column.width();
    }
    Some(row_bytes)
}

/// One column of numbers, and its position in the rows.
#[derive(Clone, Copy)]
struct Put<'a> {
    /// The lowest bytes of all values, then the next ones.
    bytes: &'a [u8],
    count: usize,
    /// Value before the first, for numbers stored as differences.
    first: Option<u64>,
    row_bytes: usize,
    offset: usize,
}

impl Put<'_> {
    /// Makes the number of planes a constant: the innermost loop dominates the time of reading a
    /// trace.
    fn planes<const W: usize>(self, planes: usize, rows: &mut [u8]) {
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

    fn put<const W: usize, const P: usize>(self, rows: &mut [u8]) {
        let Self { bytes, count, first, row_bytes, offset } = self;
        let planes: [&[u8]; P] =
            std::array::from_fn(|plane| bytes.get(plane * count..).unwrap_or_default());
        let planes = planes.map(|plane| plane.get(..count).unwrap_or_default());
        let told = |row: usize| {
            planes
                .iter()
                .enumerate()
                .fold(0, |told, (plane, bytes)| told | (u64::from(bytes[row]) << (8 * plane)))
        };
        let fields = rows.chunks_exact_mut(row_bytes).map(|row| &mut row[offset..offset + W]);
        match first {
            Some(mut before) => {
                for (at, field) in fields.enumerate().take(count) {
                    before = value(told(at), before);
                    field.copy_from_slice(&before.to_le_bytes()[..W]);
                }
            }
            None => {
                for (at, field) in fields.enumerate().take(count) {
                    field.copy_from_slice(&told(at).to_le_bytes()[..W]);
                }
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

/// The bytes not yet read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
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
