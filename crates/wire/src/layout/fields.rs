//! The description of a record: its fields, their offsets and sizes.

use super::{MissFixed, Named};

/// One field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name, the same in C.
    pub name: &'static str,
    /// Offset from the start of the record.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// The layout of one record: for comparison with the C side, and for code that splits records into
/// fields without interpreting them.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The name of the C struct.
    pub c_name: &'static str,
    /// Size of the fixed part.
    pub size: usize,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

impl Named {
    /// The failed look-up, without the number.
    pub fn miss(&self) -> MissFixed {
        let Self { head, call, error, dirfd, flags, path_bytes, bits, number: _, slot: _ } = *self;
        MissFixed { head, call, error, dirfd, flags, path_bytes, bits }
    }
}
