//! Checks what a Parquet file says about itself, before an engine that believes it reads it.
//!
//! polars asks for as much memory as a damaged file declares, and memory that there is not ends the
//! program. Here every number that sizes something is compared with the file's length and with limits.
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift> has the numbers
//! of the fields.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::thrift::{Damaged, Reader, Value};

const MAGIC: &[u8; 4] = b"PAR1";
/// Bytes at the end of a file: the length of the footer, and the magic.
const TAIL: u64 = 8;
/// Maximum size of a footer: one of 20 columns takes 2 kB a row group.
const FOOTER_BYTES_MAX: u64 = 16 << 20;
const COLUMNS_MAX: usize = 1_000;
const GROUPS_MAX: usize = 10_000;
/// Bytes of a page when it is unpacked. Writers cut them at about 1 MiB.
const PAGE_BYTES_MAX: u64 = 256 << 20;
/// Maximum size of a page header, which is a few numbers and at most two values.
const PAGE_HEADER_BYTES_MAX: u64 = 64 << 10;
/// Minimum size of a value in a dictionary.
const VALUE_BYTES_MIN: u64 = 4;
/// Numbers of parquet.thrift.
const REPEATED: u64 = 2;
const DATA_PAGE: u64 = 0;
const DICTIONARY_PAGE: u64 = 2;
const DATA_PAGE_V2: u64 = 3;

/// Maximum sizes of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) rows: u64,
    /// Bytes of all pages when they are unpacked.
    pub(crate) bytes: u64,
}

/// Fails with the reason if a file contradicts itself or exceeds a limit.
pub(crate) fn check(file: &File, limits: Limits) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let (footer, data_end) = footer(file, length)?;
    let metadata = Reader::new(&footer).structure().map_err(damaged)?;
    let columns = columns(&metadata)?;
    let rows = metadata.number(3).ok_or("its footer has no number of rows")?;
    let groups = metadata.structures(4);
    if groups.len() > GROUPS_MAX {
        return Err(format!("{} row groups are too many", groups.len()));
    }
    let (mut sum, mut bytes) = (0_u64, 0_u64);
    for group in groups {
        let chunks = group.structures(1);
        let rows = group.number(3).ok_or("a row group has no number of rows")?;
        if chunks.len() != columns {
            return Err(format!("a row group has {} of {columns} columns", chunks.len()));
        }
        sum = sum.saturating_add(rows);
        for chunk in chunks {
            let chunk = chunk.structure(3).ok_or("a column has no description")?;
            bytes = bytes.saturating_add(pages(file, chunk, rows, data_end)?);
            if bytes > limits.bytes {
                return Err(format!("more than {} bytes of pages", limits.bytes));
            }
        }
    }
    if sum != rows {
        return Err(format!("it has {sum} rows, and says {rows}"));
    }
    if rows > limits.rows {
        return Err(format!("{rows} rows are too many"));
    }
    Ok(())
}

fn damaged(Damaged: Damaged) -> String {
    "its footer or a page header is damaged".to_owned()
}

/// The footer, and where it begins.
fn footer(file: &File, length: u64) -> Result<(Vec<u8>, u64), String> {
    let bytes = |at, length| read(file, at, length);
    let no_parquet = || "it is no Parquet file, or is cut off".to_owned();
    let tail_at = length.checked_sub(TAIL).filter(|at| *at >= 4).ok_or_else(no_parquet)?;
    let tail = bytes(tail_at, TAIL)?;
    if bytes(0, 4)? != MAGIC || tail[4..] != MAGIC[..] {
        return Err(no_parquet());
    }
    let size = tail[..4].iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    let begin = tail_at.checked_sub(size).filter(|at| *at >= 4);
    match begin {
        Some(begin) if size <= FOOTER_BYTES_MAX => Ok((bytes(begin, size)?, begin)),
        _ => Err(format!("a footer of {size} bytes is too long")),
    }
}

fn read(file: &File, at: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
    file.read_exact_at(&mut bytes, at).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The number of columns, none of which has columns in it.
fn columns(metadata: &Value) -> Result<usize, String> {
    let elements = metadata.structures(2);
    let Some((root, columns)) = elements.split_first() else {
        return Err("it has no schema".to_owned());
    };
    let nested = |column: &Value| {
        column.number(5).is_some_and(|children| children > 0) || column.number(3) == Some(REPEATED)
    };
    if columns.len() > COLUMNS_MAX || root.number(5) != Some(columns.len() as u64) {
        return Err(format!("a schema of {} columns is none of ours", columns.len()));
    }
    if columns.iter().any(nested) {
        return Err("a column has columns or lists in it".to_owned());
    }
    Ok(columns.len())
}

/// Goes through the pages of a column and returns how many bytes they are when they are unpacked.
fn pages(file: &File, chunk: &Value, rows: u64, data_end: u64) -> Result<u64, String> {
    if chunk.number(5) != Some(rows) {
        return Err(format!("a column has not {rows} values, as its row group has"));
    }
    let first = [chunk.number(11), chunk.number(9)].into_iter().flatten().find(|at| *at > 0);
    let mut at = first.filter(|at| *at >= 4).ok_or("a column begins nowhere")?;
    let packed = chunk.number(7).ok_or("a column has no size")?;
    let end = at.checked_add(packed).filter(|end| *end <= data_end);
    let end = end.ok_or("a column ends behind the data")?;
    let (mut values, mut unpacked) = (0_u64, 0_u64);
    while at < end {
        let window = read(file, at, (end - at).min(PAGE_HEADER_BYTES_MAX))?;
        let mut reader = Reader::new(&window);
        let header = reader.structure().map_err(damaged)?;
        let size = |field| header.number(field).ok_or("a page has no size");
        let (large, small) = (size(2)?, size(3)?);
        if large > PAGE_BYTES_MAX {
            return Err(format!("a page of {large} bytes is too large"));
        }
        at = at.saturating_add(reader.position() as u64).saturating_add(small);
        if at > end {
            return Err("a page ends behind its column".to_owned());
        }
        unpacked = unpacked.saturating_add(large);
        let kind = header.number(1);
        let of_kind = match kind {
            Some(DATA_PAGE) => header.structure(5),
            Some(DICTIONARY_PAGE) => header.structure(7),
            Some(DATA_PAGE_V2) => header.structure(8),
            _ => return Err("a page is of an unknown kind".to_owned()),
        };
        let number = of_kind.and_then(|it| it.number(1)).ok_or("a page has no number of values")?;
        if kind != Some(DICTIONARY_PAGE) {
            values = values.saturating_add(number);
        } else if number.saturating_mul(VALUE_BYTES_MIN) > large {
            return Err("a dictionary has more values than bytes".to_owned());
        }
    }
    if values != rows {
        return Err(format!("the pages of a column have {values} values, and not {rows}"));
    }
    Ok(unpacked)
}
