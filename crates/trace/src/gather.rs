//! Putting records together again from columns, whoever made them.

use proctrace_wire::layout::Head;

use crate::columns::{Column, value};

/// The records in these columns. None unless there are exactly `raw_bytes` bytes of them; never
/// allocates more than a few times that.
pub(crate) fn gather(columns: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    let mut input = Input(columns);
    let records = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
    let order = input.take(usize::try_from(records).ok()?)?;
    let mut rows = vec![0usize; usize::from(input.byte()?)];
    for shape in order {
        *rows.get_mut(usize::from(*shape))? += 1;
    }
    let mut room = raw_bytes;
    let mut shapes = Vec::new();
    for rows in rows {
        let shape = Shape::gather(&mut input, rows, room)?;
        room -= shape.rows.len();
        shapes.push(shape);
    }

    let mut raw = Vec::with_capacity(raw_bytes);
    for shape in order {
        let shape = &mut shapes[usize::from(*shape)];
        let (row, _) = shape.rows.get(shape.at..)?.split_at_checked(shape.row_bytes)?;
        shape.at += shape.row_bytes;
        let size = usize::from(u16::from_le_bytes([row[2], row[3]]));
        if size > raw_bytes - raw.len() {
            return None;
        }
        raw.extend_from_slice(row);
        raw.extend_from_slice(input.take(size.checked_sub(row.len())?)?);
    }
    (input.0.is_empty() && raw.len() == raw_bytes).then_some(raw)
}

/// The fixed parts of all records of one shape.
struct Shape {
    /// At least those of a head.
    row_bytes: usize,
    rows: Vec<u8>,
    /// How much of them has been used.
    at: usize,
}

impl Shape {
    /// Reads its columns. None if its rows take more than `room`.
    fn gather(input: &mut Input<'_>, rows: usize, room: usize) -> Option<Self> {
        let mut columns = Vec::new();
        let mut row_bytes = 0;
        for _ in 0..input.byte()? {
            let column = Column::from_head(input.byte()?)?;
            let first = match column {
                Column::Numbers { width, differences: true, .. } => Some(input.take(width)?),
                _ => None,
            };
            row_bytes += column.width();
            columns.push((column, first, input.take(rows.checked_mul(column.told())?)?));
        }
        if rows == 0 || row_bytes < size_of::<Head>() || rows.checked_mul(row_bytes)? > room {
            return None;
        }
        let mut shape = Self { row_bytes, rows: vec![0; rows * row_bytes], at: 0 };
        let mut values = vec![0; rows];
        let mut offset = 0;
        for (column, first, bytes) in columns {
            if let Column::Numbers { .. } = column {
                join(bytes, &mut values);
            }
            if let Some(first) = first {
                sum(first, &mut values);
            }
            match column {
                Column::Verbatim { width: 0 } => {}
                Column::Verbatim { width } => {
                    for (row, bytes) in shape.fields(offset, width).zip(bytes.chunks_exact(width)) {
                        row.copy_from_slice(bytes);
                    }
                }
                Column::Numbers { width: 1, .. } => shape.put::<1>(offset, &values),
                Column::Numbers { width: 2, .. } => shape.put::<2>(offset, &values),
                Column::Numbers { width: 4, .. } => shape.put::<4>(offset, &values),
                Column::Numbers { .. } => shape.put::<8>(offset, &values),
            }
            offset += column.width();
        }
        Some(shape)
    }

    /// This field of each row.
    fn fields(&mut self, offset: usize, width: usize) -> impl Iterator<Item = &mut [u8]> {
        self.rows.chunks_exact_mut(self.row_bytes).map(move |row| &mut row[offset..offset + width])
    }

    fn put<const W: usize>(&mut self, offset: usize, values: &[u64]) {
        for (field, value) in self.fields(offset, W).zip(values) {
            field.copy_from_slice(&value.to_le_bytes()[..W]);
        }
    }
}

/// Makes numbers of their bytes: the lowest of all, then the next.
fn join(planes: &[u8], values: &mut [u64]) {
    values.fill(0);
    for (plane, bytes) in planes.chunks_exact(values.len()).enumerate() {
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value |= u64::from(*byte) << (8 * plane);
        }
    }
}

/// Makes values of their differences.
fn sum(first: &[u8], differences: &mut [u64]) {
    let mut word = [0; 8];
    word[..first.len()].copy_from_slice(first);
    let mut before = u64::from_le_bytes(word);
    for number in differences {
        before = value(*number, before);
        *number = before;
    }
}

/// What has not been read yet.
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
