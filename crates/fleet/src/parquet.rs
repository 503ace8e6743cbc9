//! Parquet files of a few rows: <https://parquet.apache.org/docs/file-format/>.
//!
//! Most of a small file describes its columns. The writer of polars stores each description twice,
//! and the schema of Arrow beside that of Parquet: a job had twice the size that its files may have.

use proctrace_analysis::{ColumnKind, TableSchema};
use proctrace_findings::{Rows, RowsColumn, RowsValues};

const MAGIC: &[u8; 4] = b"PAR1";
/// Numbers of parquet.thrift.
const ENCODING_PLAIN: i64 = 0;
const ENCODING_RLE: i64 = 3;
const CODEC_NONE: i64 = 0;
const CODEC_ZSTD: i64 = 6;
const CONVERTED_UTF8: i64 = 0;
const OPTIONAL: i64 = 1;
/// The best of those levels that need no more memory than is worth it.
const ZSTD_LEVEL: i32 = 19;

/// The rows as a file with one page for each column.
pub(crate) fn file(schema: &TableSchema, rows: &Rows) -> Vec<u8> {
    let height = rows.height();
    let mut out = MAGIC.to_vec();
    let mut chunks = Vec::new();
    let columns: Vec<(&RowsColumn, Physical)> = rows
        .columns
        .iter()
        .filter_map(|column| Some((column, Physical::of(schema.column(&column.name)?.kind)?)))
        .collect();
    for (column, physical) in &columns {
        let page = page(&column.values, *physical, height);
        let offset = out.len();
        out.extend_from_slice(&page.header);
        out.extend_from_slice(&page.body);
        chunks.push(chunk(column, *physical, height, offset, &page));
    }
    let footer = footer(&columns, height, &chunks);
    out.extend_from_slice(&footer);
    out.extend_from_slice(&u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

/// A physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Physical {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    ByteArray = 6,
}

impl Physical {
    /// `None` for types that no table of a fleet has.
    fn of(kind: ColumnKind) -> Option<Self> {
        Some(match kind {
            ColumnKind::Flag => Self::Boolean,
            ColumnKind::I32 => Self::Int32,
            ColumnKind::I64 => Self::Int64,
            ColumnKind::Text => Self::ByteArray,
            _ => return None,
        })
    }
}

struct Page {
    header: Vec<u8>,
    body: Vec<u8>,
    unpacked_bytes: usize,
    codec: i64,
}

fn page(values: &RowsValues, physical: Physical, height: usize) -> Page {
    let (known, plain) = plain(values, physical);
    let levels = levels(&known);
    let mut body = u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    body.extend(levels);
    body.extend(plain);
    let unpacked_bytes = body.len();
    let packed = zstd::bulk::compress(&body, ZSTD_LEVEL).ok();
    let (body, codec) = match packed.filter(|packed| packed.len() < unpacked_bytes) {
        Some(packed) => (packed, CODEC_ZSTD),
        None => (body, CODEC_NONE),
    };
    let mut header = Struct::default();
    header.number(1, 0).number(2, size(unpacked_bytes)).number(3, size(body.len()));
    let mut data = Struct::default();
    data.number(1, size(height)).number(2, ENCODING_PLAIN);
    data.number(3, ENCODING_RLE).number(4, ENCODING_RLE);
    header.nested(5, data);
    Page { header: header.end(), body, unpacked_bytes, codec }
}

/// Flags of the values, true if not null, and the encoding PLAIN of those that are not.
fn plain(values: &RowsValues, physical: Physical) -> (Vec<bool>, Vec<u8>) {
    let mut out = Vec::new();
    let known = match values {
        RowsValues::Text(values) => {
            for text in values.iter().flatten() {
                out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                out.extend(text.as_bytes());
            }
            values.iter().map(Option::is_some).collect()
        }
        RowsValues::Flag(values) => {
            out = bits(values.iter().flatten().copied());
            values.iter().map(Option::is_some).collect()
        }
        RowsValues::Signed(values) if physical == Physical::Int32 => {
            // What exceeds the type is not known.
            let narrow = |value: &Option<i64>| value.and_then(|value| i32::try_from(value).ok());
            out.extend(values.iter().filter_map(narrow).flat_map(i32::to_le_bytes));
            values.iter().map(|value| narrow(value).is_some()).collect()
        }
        RowsValues::Signed(values) => {
            out.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
            values.iter().map(Option::is_some).collect()
        }
        // No table of a fleet has columns of other types.
        other => vec![false; other.len()],
    };
    (known, out)
}

/// Bits, the first in the lowest place.
fn bits(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, flag) in flags.enumerate() {
        if at.is_multiple_of(8) {
            out.push(0);
        }
        if let Some(last) = out.last_mut() {
            *last |= u8::from(flag) << (at % 8);
        }
    }
    out
}

/// Definition levels in the encoding RLE: 1 for a value, 0 for null.
fn levels(known: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    match known.first() {
        Some(first) if known.iter().all(|level| level == first) => {
            varint(&mut out, (known.len() as u64) << 1);
            out.push(u8::from(*first));
        }
        _ => {
            let packed = bits(known.iter().copied());
            varint(&mut out, ((packed.len() as u64) << 1) | 1);
            out.extend(packed);
        }
    }
    out
}

fn chunk(
    column: &RowsColumn,
    physical: Physical,
    height: usize,
    offset: usize,
    page: &Page,
) -> Struct {
    let header = page.header.len();
    let mut about = Struct::default();
    about.number(1, physical as i64).numbers(2, &[ENCODING_PLAIN, ENCODING_RLE]);
    about.texts(3, &[&column.name]).number(4, page.codec).long(5, size(height));
    about.long(6, size(header + page.unpacked_bytes)).long(7, size(header + page.body.len()));
    about.long(9, size(offset));
    let mut chunk = Struct::default();
    chunk.long(2, 0).nested(3, about);
    chunk
}

fn footer(columns: &[(&RowsColumn, Physical)], height: usize, chunks: &[Struct]) -> Vec<u8> {
    let mut root = Struct::default();
    root.text(4, "schema").number(5, size(columns.len()));
    let mut elements = vec![root];
    for (column, physical) in columns {
        let mut element = Struct::default();
        element.number(1, *physical as i64).number(3, OPTIONAL).text(4, &column.name);
        if *physical == Physical::ByteArray {
            element.number(6, CONVERTED_UTF8);
        }
        elements.push(element);
    }
    let mut groups = Vec::new();
    if height > 0 {
        let mut group = Struct::default();
        group.structs(1, chunks).long(2, 0).long(3, size(height));
        groups.push(group);
    }
    let mut file = Struct::default();
    file.number(1, 1).structs(2, &elements).long(3, size(height)).structs(4, &groups);
    file.text(6, "proctrace");
    file.end()
}

fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// A struct in Thrift's compact protocol; fields are added in order of their numbers.
#[derive(Debug, Clone, Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

/// Types of fields and of elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push(((number - self.last) << 4) | kind);
        self.last = number;
    }

    fn number(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, I32);
        zigzag(&mut self.bytes, value);
        self
    }

    fn long(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, I64);
        zigzag(&mut self.bytes, value);
        self
    }

    fn text(&mut self, number: u8, text: &str) -> &mut Self {
        self.field(number, BINARY);
        self.push_text(text);
        self
    }

    fn push_text(&mut self, text: &str) {
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn list(&mut self, number: u8, kind: u8, len: usize) {
        self.field(number, LIST);
        if len < 15 {
            self.bytes.push(((len as u8) << 4) | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, len as u64);
        }
    }

    fn numbers(&mut self, number: u8, values: &[i64]) -> &mut Self {
        self.list(number, I32, values.len());
        values.iter().for_each(|value| zigzag(&mut self.bytes, *value));
        self
    }

    fn texts(&mut self, number: u8, texts: &[&str]) -> &mut Self {
        self.list(number, BINARY, texts.len());
        texts.iter().for_each(|text| self.push_text(text));
        self
    }

    fn structs(&mut self, number: u8, structs: &[Self]) -> &mut Self {
        self.list(number, STRUCT, structs.len());
        structs.iter().for_each(|it| self.bytes.extend(it.clone().end()));
        self
    }

    fn nested(&mut self, number: u8, inner: Self) -> &mut Self {
        self.field(number, STRUCT);
        self.bytes.extend(inner.end());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use polars::prelude::*;
    use polars_io::SerReader;
    use polars_io::parquet::read::ParquetReader;
    use proctrace_analysis::ColumnSchema;
    use proptest::prelude::*;

    use super::*;
    const COLUMNS: &[ColumnSchema] = &[
        ColumnSchema { name: "text", kind: ColumnKind::Text, says: "" },
        ColumnSchema { name: "long", kind: ColumnKind::I64, says: "" },
        ColumnSchema { name: "short", kind: ColumnKind::I32, says: "" },
        ColumnSchema { name: "flag", kind: ColumnKind::Flag, says: "" },
    ];
    const TABLE: TableSchema = TableSchema { name: "t", says: "", columns: COLUMNS };

    type Row = (Option<String>, Option<i64>, Option<i32>, Option<bool>);

    fn rows(values: &[Row]) -> Rows {
        let column = |name: &str, values| RowsColumn { name: name.into(), values };
        let short = |value: Option<i32>| value.map(i64::from);
        Rows {
            columns: vec![
                column("text", RowsValues::Text(values.iter().map(|it| it.0.clone()).collect())),
                column("long", RowsValues::Signed(values.iter().map(|it| it.1).collect())),
                column("short", RowsValues::Signed(values.iter().map(|it| short(it.2)).collect())),
                column("flag", RowsValues::Flag(values.iter().map(|it| it.3).collect())),
            ],
        }
    }

    /// The rows as polars would have made them.
    fn frame(rows: &Rows) -> PolarsResult<DataFrame> {
        let column = |found: &RowsColumn| {
            let name: PlSmallStr = found.name.as_str().into();
            let series = match &found.values {
                RowsValues::Text(values) => Series::new(name, values),
                RowsValues::Signed(values) => Series::new(name, values),
                RowsValues::Flag(values) => Series::new(name, values),
                _ => Series::new_null(name, rows.height()),
            };
            let kind = TABLE.column(&found.name).unwrap().kind;
            Ok(series.cast(&kind.dtype())?.into_column())
        };
        DataFrame::new(rows.height(), rows.columns.iter().map(column).collect::<PolarsResult<_>>()?)
    }

    fn is_read_back(rows: &Rows) {
        let read = ParquetReader::new(Cursor::new(file(&TABLE, rows))).finish().unwrap();
        assert!(read.equals_missing(&frame(rows).unwrap()), "{read:?}");
    }

    #[test]
    fn files_without_rows_have_columns() {
        is_read_back(&rows(&[]));
    }

    #[test]
    fn files_of_many_rows_are_read_back() {
        let value = |at: i32| {
            (Some(format!("/a/{}", at % 7)), Some(i64::from(at)), (at % 3 > 0).then_some(at), None)
        };
        is_read_back(&rows(&(0..1000).map(value).collect::<Vec<_>>()));
    }

    proptest! {
        #[test]
        fn any_values_are_read_back(
            values in prop::collection::vec(
                (
                    prop::option::of(any::<String>()),
                    prop::option::of(any::<i64>()),
                    prop::option::of(any::<i32>()),
                    prop::option::of(any::<bool>()),
                ),
                0..40,
            )
        ) {
            is_read_back(&rows(&values));
        }
    }
}
