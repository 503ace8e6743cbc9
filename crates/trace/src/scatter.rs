//! Splitting records into columns.

use proctrace_wire::layout::Head;
use proctrace_wire::{Frames, Kind};

use crate::columns::{Column, difference};

/// Splits one block of records after another, reusing its buffers, because freeing and allocating
/// memory costs more than the splitting.
#[derive(Debug, Default)]
pub(crate) struct Scatter {
    shapes: Vec<Shape>,
    order: Vec<u8>,
    tails: Vec<u8>,
    values: Values,
}

/// The records that have the same fields.
#[derive(Debug)]
struct Shape {
    /// None: only the head is known.
    kind: Option<Kind>,
    /// Width of each field of the fixed part.
    widths: Vec<usize>,
    /// Their offsets in the block; empty if the block contains none of them.
    rows: Vec<usize>,
}

impl Shape {
    fn of(kind: Option<Kind>) -> Self {
        // The first field of each kind is the head.
        let body = kind.map_or(&[][..], |kind| &kind.layout().fields[1..]);
        let widths = Head::LAYOUT.fields.iter().chain(body).map(|field| field.size).collect();
        Self { kind, widths, rows: Vec::new() }
    }
}

impl Scatter {
    /// Writes the columns of these records to `out`. None if the bytes are not entirely records.
    pub(crate) fn scatter(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let used = self.sort(raw)?;
        out.clear();
        out.extend_from_slice(&u32::try_from(self.order.len()).ok()?.to_le_bytes());
        out.extend_from_slice(&self.order);
        out.push(u8::try_from(used).ok()?);
        for shape in &self.shapes[..used] {
            out.push(u8::try_from(shape.widths.len()).ok()?);
            let mut offset = 0;
            for &width in &shape.widths {
                let rows = Rows { raw, starts: &shape.rows, offset };
                match width {
                    1 => self.values.scatter::<1>(rows, out)?,
                    2 => self.values.scatter::<2>(rows, out)?,
                    4 => self.values.scatter::<4>(rows, out)?,
                    8 => self.values.scatter::<8>(rows, out)?,
                    _ => {
                        out.push(Column::Verbatim { width }.head()?);
                        for start in &shape.rows {
                            out.extend_from_slice(&raw[start + offset..][..width]);
                        }
                    }
                }
                offset += width;
            }
        }
        out.extend_from_slice(&self.tails);
        Some(())
    }

    /// Determines the shape of each record, and moves the shapes in use to the front, in order of
    /// appearance; returns their number.
    fn sort(&mut self, raw: &[u8]) -> Option<usize> {
        self.order.clear();
        self.tails.clear();
        for shape in &mut self.shapes {
            shape.rows.clear();
        }
        let (mut used, mut start) = (0, 0);
        // Most records have the same kind as the one before: its kind, fixed size and shape.
        let mut like = (0, usize::MAX, 0);
        for frame in Frames::new(raw) {
            let frame = frame.ok()?;
            let (fixed, at) = if frame.head.kind == like.0 && frame.bytes.len() >= like.1 {
                (like.1, like.2)
            } else {
                // A record too short for its kind is still stored: decoding it reports the error.
                let kind = Kind::from_number(frame.head.kind)
                    .filter(|kind| kind.layout().size <= frame.bytes.len());
                let at = self.shape_of(kind, &mut used);
                let fixed = kind.map(|kind| kind.layout().size);
                like = (frame.head.kind, fixed.unwrap_or(usize::MAX), at);
                (fixed.unwrap_or(size_of::<Head>()), at)
            };
            self.order.push(u8::try_from(at).ok()?);
            self.shapes[at].rows.push(start);
            if frame.bytes.len() > fixed {
                self.tails.extend_from_slice(&frame.bytes[fixed..]);
            }
            start += frame.bytes.len();
        }
        Some(used)
    }

    /// Index of this shape among the first `used`; if absent, it becomes the next.
    fn shape_of(&mut self, kind: Option<Kind>, used: &mut usize) -> usize {
        let known = self.shapes[..*used].iter().position(|shape| shape.kind == kind);
        known.unwrap_or_else(|| {
            let later = self.shapes[*used..].iter().position(|shape| shape.kind == kind);
            let from = later.map_or(self.shapes.len(), |later| *used + later);
            if later.is_none() {
                self.shapes.push(Shape::of(kind));
            }
            self.shapes.swap(*used, from);
            *used += 1;
            *used - 1
        })
    }
}

/// One field of all records of a shape.
#[derive(Clone, Copy)]
struct Rows<'a> {
    raw: &'a [u8],
    starts: &'a [usize],
    offset: usize,
}

impl Rows<'_> {
    #[inline]
    fn number<const W: usize>(self, start: usize) -> u64 {
        let at = start + self.offset;
        let mut word = [0; 8];
        word[..W].copy_from_slice(&self.raw[at..at + W]);
        u64::from_le_bytes(word)
    }
}

/// The numbers of one field.
#[derive(Debug, Default)]
struct Values {
    plain: Vec<u64>,
    differences: Vec<u64>,
}

/// Statistics of a column.
#[derive(Default)]
struct Seen {
    /// Bitwise OR of the values.
    any: u64,
    /// Total bits without leading zeros.
    bits: u64,
}

impl Seen {
    #[inline]
    fn note(&mut self, value: u64) {
        self.any |= value;
        self.bits += u64::from(64 - value.leading_zeros());
    }
}

impl Values {
    /// Writes a column of `W`-byte numbers to `out`, in the form with fewer bits.
    fn scatter<const W: usize>(&mut self, rows: Rows<'_>, out: &mut Vec<u8>) -> Option<()> {
        let first = rows.number::<W>(*rows.starts.first()?);
        let head = |seen: &Seen, differences| {
            let planes = 8 - seen.any.leading_zeros() as usize / 8;
            Some((planes, Column::Numbers { width: W, planes, differences }.head()?))
        };
        let (mut plain, mut differences) = (Seen::default(), Seen::default());
        // Many fields are constant within a block; these are finished here.
        if rows.starts.iter().all(|start| rows.number::<W>(*start) == first) {
            plain.note(first);
            let (planes, head) = head(&plain, false)?;
            out.push(head);
            for plane in 0..planes {
                out.resize(out.len() + rows.starts.len(), (first >> (8 * plane)) as u8);
            }
            return Some(());
        }
        self.plain.clear();
        self.differences.clear();
        let mut before = first;
        self.plain.extend(rows.starts.iter().map(|start| rows.number::<W>(*start)));
        self.differences.extend(self.plain.iter().map(|value| {
            let difference = difference::<W>(*value, before);
            before = *value;
            plain.note(*value);
            differences.note(difference);
            difference
        }));
        let by_differences = differences.bits < plain.bits;
        let (values, seen) = match by_differences {
            true => (&self.differences, differences),
            false => (&self.plain, plain),
        };
        let (planes, head) = head(&seen, by_differences)?;
        out.push(head);
        if by_differences {
            out.extend_from_slice(&first.to_le_bytes()[..W]);
        }
        for plane in 0..planes {
            out.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proctrace_wire::IntoBytes;
    use proctrace_wire::layout::Again;

    use super::*;

    fn again(kind: Kind, task: u32, time_ns: u64, number: u32) -> Vec<u8> {
        let size = size_of::<Again>() as u16;
        let head = Head { kind: kind as u16, size, task, time_ns };
        Again { head, number, pad: 0 }.as_bytes().to_vec()
    }

    fn scattered(records: &[Vec<u8>]) -> Vec<u8> {
        let mut columns = Vec::new();
        Scatter::default().scatter(&records.concat(), &mut columns).unwrap();
        columns
    }

    /// Each column byte for byte, as columns.rs describes them.
    #[test]
    fn numbers_are_stored_in_the_form_with_fewer_bits() {
        let kind = Kind::LookupAgain;
        let columns = scattered(&[
            again(kind, 1, 1000, 7),
            again(kind, 3, 1300, 300),
            again(kind, 5, 1301, 8),
        ]);
        let number = kind as u8;
        let expected = [
            // Three records of the first shape of one, which has six columns.
            &[3, 0, 0, 0, 0, 0, 0, 1, 6][..],
            &[0x11, number, number, number],
            &[0x11, 24, 24, 24],
            // As many bits as the differences would have.
            &[0x21, 1, 3, 5],
            // 0, 300 and 1 more than the one before.
            &[0x72, 0xe8, 3, 0, 0, 0, 0, 0, 0, 0, 88, 2, 0, 2, 0],
            // The differences would have more.
            &[0x22, 7, 44, 8, 0, 1, 0],
            // Only zeros.
            &[0x20],
        ];
        assert_eq!(columns, expected.concat());
    }

    #[test]
    fn each_kind_has_a_shape() {
        let (one, other) = (Kind::LookupAgain, Kind::OpenedAgain);
        let records = [one, other, other, one, one].map(|kind| again(kind, 1, 1, 1));
        assert_eq!(scattered(&records)[..10], [5, 0, 0, 0, 0, 1, 1, 0, 0, 2]);
    }
}
