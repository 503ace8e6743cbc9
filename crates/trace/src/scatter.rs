//! Taking records apart into columns.

use proctrace_wire::layout::Head;
use proctrace_wire::{Frames, Kind};

use crate::columns::{Column, difference};

/// The records that have the same fields.
struct Shape<'a> {
    /// None: only their head is known.
    kind: Option<Kind>,
    rows: Vec<&'a [u8]>,
}

impl Shape<'_> {
    /// Bytes of each field of the fixed part.
    fn widths(&self) -> Vec<usize> {
        // The first field of each kind is the head.
        let body = self.kind.map_or(&[][..], |kind| &kind.layout().fields[1..]);
        Head::LAYOUT.fields.iter().chain(body).map(|field| field.size).collect()
    }
}

/// Puts the columns of these records into `out`. None if the bytes are not all records.
pub(crate) fn scatter(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut shapes: Vec<Shape<'_>> = Vec::new();
    let mut order = Vec::new();
    let mut tails = Vec::new();
    for frame in Frames::new(raw) {
        let frame = frame.ok()?;
        // One too short for its kind is kept all the same: decoding it says what is wrong.
        let kind = Kind::from_number(frame.head.kind)
            .filter(|kind| kind.layout().size <= frame.bytes.len());
        let fixed = kind.map_or(size_of::<Head>(), |kind| kind.layout().size);
        let at = shapes.iter().position(|shape| shape.kind == kind).unwrap_or_else(|| {
            shapes.push(Shape { kind, rows: Vec::new() });
            shapes.len() - 1
        });
        order.push(u8::try_from(at).ok()?);
        shapes[at].rows.push(frame.bytes);
        tails.extend_from_slice(&frame.bytes[fixed..]);
    }

    out.clear();
    out.extend_from_slice(&u32::try_from(order.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&order);
    out.push(u8::try_from(shapes.len()).ok()?);
    let mut values = Values::default();
    for shape in &shapes {
        let widths = shape.widths();
        out.push(u8::try_from(widths.len()).ok()?);
        let mut offset = 0;
        for width in widths {
            match width {
                1 => values.scatter::<1>(&shape.rows, offset, out)?,
                2 => values.scatter::<2>(&shape.rows, offset, out)?,
                4 => values.scatter::<4>(&shape.rows, offset, out)?,
                8 => values.scatter::<8>(&shape.rows, offset, out)?,
                _ => {
                    out.push(Column::Verbatim { width }.head()?);
                    for row in &shape.rows {
                        out.extend_from_slice(&row[offset..offset + width]);
                    }
                }
            }
            offset += width;
        }
    }
    out.extend_from_slice(&tails);
    Some(())
}

/// The numbers of one field.
#[derive(Default)]
struct Values {
    plain: Vec<u64>,
    differences: Vec<u64>,
}

impl Values {
    /// Puts a column of numbers of `W` bytes into `out`, in the form that has fewer bits.
    fn scatter<const W: usize>(
        &mut self,
        rows: &[&[u8]],
        offset: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        self.plain.clear();
        self.plain.extend(rows.iter().map(|row| {
            let mut word = [0; 8];
            word[..W].copy_from_slice(&row[offset..offset + W]);
            u64::from_le_bytes(word)
        }));
        let first = *self.plain.first()?;
        let mut before = first;
        self.differences.clear();
        self.differences.extend(self.plain.iter().map(|value| {
            let difference = difference::<W>(*value, before);
            before = *value;
            difference
        }));

        let differences = bits(&self.differences) < bits(&self.plain);
        let values = if differences { &self.differences } else { &self.plain };
        let planes = 8 - values.iter().fold(0, |all, value| all | value).leading_zeros() / 8;
        let planes = planes as usize;
        out.push(Column::Numbers { width: W, planes, differences }.head()?);
        if differences {
            out.extend_from_slice(&first.to_le_bytes()[..W]);
        }
        for plane in 0..planes {
            out.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
        Some(())
    }
}

/// What these numbers take without their leading zeros.
fn bits(values: &[u64]) -> u64 {
    values.iter().map(|value| u64::from(64 - value.leading_zeros())).sum()
}
