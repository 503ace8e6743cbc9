//! Column layout of records: the form of a block before compression.
//!
//! In records of one kind a field mostly equals that of the record before, or is a little larger.
//! Stored by field, as differences where these are smaller, and with bytes of equal significance
//! adjacent, records compress to half of what they need otherwise. The total time does not grow,
//! because zstd has half the bytes to process and a third of the work.
//!
//! ```text
//! block    u32 records, then the shape of each: u8
//! u8 shapes, then for each: u8 columns, and the columns in field order
//! tails: the bytes of each record after its fixed part
//! column   u8 head, see below; for differences the first value; then the bytes
//! head     128 + n         field of n bytes, record by record
//! 0 + 16 w + n    field of 2^w bytes: the n low bytes of all values, all lowest first;
//! higher bytes are 0
//! 64 + 16 w + n   the same for differences to the value before, sign in the lowest bit
//! ```
//!
//! A block is self-describing, so reading it requires no record layout. Only the size of a record
//! is interpreted, which is its third and fourth byte.

/// Set if the field is not a number.
const VERBATIM: u8 = 128;
/// Set if numbers are stored as differences.
const DIFFERENCES: u8 = 64;

/// Encoding of one field of all records of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Unchanged bytes, `width` for each record.
    Verbatim { width: usize },
    /// Numbers of `width` bytes, of which the lowest `planes` are stored.
    Numbers { width: usize, planes: usize, differences: bool },
}

impl Column {
    /// Column of a head; None for an invalid one.
    pub(crate) fn from_head(head: u8) -> Option<Self> {
        if head & VERBATIM != 0 {
            return Some(Self::Verbatim { width: usize::from(head & !VERBATIM) });
        }
        let (width, planes) = (1 << ((head >> 4) & 3), usize::from(head & 15));
        let differences = head & DIFFERENCES != 0;
        (planes <= width).then_some(Self::Numbers { width, planes, differences })
    }

    /// Head of a column; None if the field is too wide.
    pub(crate) fn head(self) -> Option<u8> {
        match self {
            Self::Verbatim { width } => {
                u8::try_from(width).ok().filter(|width| *width < VERBATIM).map(|w| w | VERBATIM)
            }
            Self::Numbers { width, planes, differences } => {
                let differences = if differences { DIFFERENCES } else { 0 };
                Some(differences | ((width.ilog2() as u8) << 4) | planes as u8)
            }
        }
    }

    /// Bytes of the field in each record.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Verbatim { width } | Self::Numbers { width, .. } => width,
        }
    }

    /// Stored bytes per record.
    pub(crate) fn told(self) -> usize {
        match self {
            Self::Verbatim { width } => width,
            Self::Numbers { planes, .. } => planes,
        }
    }
}

/// The difference of two `W`-byte numbers, zigzag-encoded: small if they are close, whichever is
/// larger.
pub(crate) fn difference<const W: usize>(value: u64, before: u64) -> u64 {
    let unused = 64 - 8 * W as u32;
    let signed = (value.wrapping_sub(before) << unused).cast_signed() >> unused;
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

/// The inverse of [`difference`]; the low bytes are the number.
pub(crate) fn value(difference: u64, before: u64) -> u64 {
    before.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Gather;
    use crate::scatter::Scatter;
    use proctrace_wire::Kind;
    use proptest::prelude::*;

    #[test]
    fn heads_say_what_columns_are() {
        for head in 0..=u8::MAX {
            if let Some(column) = Column::from_head(head) {
                assert_eq!(column.head(), Some(head));
            }
        }
        assert_eq!(Column::Verbatim { width: 128 }.head(), None);
        assert_eq!(Column::from_head(9), None, "9 bytes of 1");
    }

    /// Records of all kinds, including unknown ones; most bytes are small, as in real records.
    fn any_records() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => Just(0u8), 2 => 0u8..3, 1 => any::<u8>()];
        let record = (0u16..20, 0usize..500, proptest::collection::vec(byte, 1..60));
        let record = record.prop_map(|(kind, more, body)| {
            // Half of them have at least the size of their kind, half have not.
            let fixed = Kind::from_number(kind).map_or(16, |kind| kind.layout().size);
            let size = (if more % 2 == 0 { fixed + more / 8 } else { 16 + more / 2 }) & !7;
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend(u16::try_from(size).unwrap().to_le_bytes());
            bytes.extend(body.iter().cycle().take(size - 4));
            bytes
        });
        proptest::collection::vec(record, 0..40).prop_map(|records| records.concat())
    }

    fn gather(columns: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
        let mut raw = Vec::new();
        Gather::default().gather(columns, raw_bytes, &mut raw)?;
        Some(raw)
    }

    fn scattered(raw: &[u8]) -> Option<Vec<u8>> {
        let mut columns = Vec::new();
        Scatter::default().scatter(raw, &mut columns)?;
        Some(columns)
    }

    proptest! {
        #[test]
        fn any_difference_comes_back(a: u64, b: u64) {
            prop_assert_eq!(value(difference::<8>(a, b), b), a);
            prop_assert_eq!(value(difference::<4>(a, b), b) as u32, a as u32);
            prop_assert_eq!(value(difference::<2>(a, b), b) as u16, a as u16);
            prop_assert_eq!(value(difference::<1>(a, b), b) as u8, a as u8);
            prop_assert!(difference::<2>(a, b) <= u64::from(u16::MAX));
        }

        #[test]
        fn records_come_back_as_they_were(raw in any_records()) {
            let columns = scattered(&raw).unwrap();
            prop_assert_eq!(gather(&columns, raw.len()), Some(raw.clone()));
            // Not with any other size.
            prop_assert_eq!(gather(&columns, raw.len() + 8), None);
            if let Some(fewer) = raw.len().checked_sub(8) {
                prop_assert_eq!(gather(&columns, fewer), None);
            }
        }

        #[test]
        fn a_block_owes_nothing_to_those_before_it(blocks in proptest::collection::vec(any_records(), 2..5)) {
            let (mut scatter, mut gather) = (Scatter::default(), Gather::default());
            for raw in blocks {
                let mut columns = Vec::new();
                scatter.scatter(&raw, &mut columns).unwrap();
                prop_assert_eq!(&columns, &scattered(&raw).unwrap());
                // Damaged input leaves no state behind either.
                let _ = gather.gather(&columns[..columns.len() / 2], raw.len(), &mut Vec::new());
                let mut again = Vec::new();
                prop_assert_eq!(gather.gather(&columns, raw.len(), &mut again), Some(()));
                prop_assert_eq!(again, raw);
            }
        }

        #[test]
        fn what_is_no_record_is_not_taken_apart(mut raw in any_records(), odd in 1usize..8) {
            raw.extend(vec![1; odd]);
            prop_assert_eq!(scattered(&raw), None);
        }

        #[test]
        fn no_bytes_make_it_panic_or_exceed_the_limit(
            raw in any_records(),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut: prop::sample::Index,
            limit in 0usize..20_000,
            noise: Vec<u8>,
        ) {
            let mut columns = scattered(&raw).unwrap();
            for (at, byte) in damage {
                let at = at.index(columns.len());
                columns[at] = byte;
            }
            for bytes in [&columns[..], &columns[..cut.index(columns.len())], &noise] {
                prop_assert!(gather(bytes, limit).is_none_or(|raw| raw.len() == limit));
                let _ = gather(bytes, raw.len());
            }
        }
    }
}
