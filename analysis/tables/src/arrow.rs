//! Tables as files in standard formats: Parquet and Arrow, one batch of rows at a time.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use polars::prelude::*;
use polars_arrow::datatypes::{ArrowSchema, Metadata};
use polars_arrow::io::ipc::write::{Compression, FileWriter, WriteOptions};
use polars_io::parquet::write::{
    BatchedWriter, KeyValueMetadata, ParquetCompression, ParquetWriter,
};
use polars_parquet::write::schema_to_metadata_key;

use crate::error::TableError;
use crate::schema::TableSchema;

/// Few readers support string views yet, so plain strings are written.
fn compat() -> CompatLevel {
    CompatLevel::oldest()
}

/// Metadata keys of a field.
const SAYS: &str = "description";
const UNIT: &str = "unit";

/// The schema of a frame, with the description and unit of each column as metadata of its field.
fn described(schema: &Schema, table: Option<&TableSchema>) -> ArrowSchema {
    let mut arrow = schema.to_arrow(compat());
    for field in arrow.iter_values_mut() {
        let column = table.and_then(|table| table.column(&field.name));
        let Some(column) = column else { continue };
        let mut metadata: Metadata = BTreeMap::from([(SAYS.into(), column.says.into())]);
        if let Some(unit) = column.unit() {
            metadata.insert(UNIT.into(), unit.into());
        }
        field.metadata = Some(Arc::new(metadata));
    }
    arrow
}

/// A file of one table.
pub(crate) enum TableFile<W: Write> {
    Parquet(Box<BatchedWriter<W>>),
    Arrow(Box<FileWriter<W>>),
}

impl<W: Write> TableFile<W> {
    /// Begins a Parquet file for frames of this schema.
    pub(crate) fn parquet(
        out: W,
        schema: &Schema,
        table: Option<&TableSchema>,
    ) -> Result<Self, TableError> {
        // Readers take field metadata from the Arrow schema that is stored beside Parquet's own.
        let arrow = schema_to_metadata_key(&described(schema, table));
        let mut metadata = vec![(arrow.key, arrow.value.unwrap_or_default())];
        metadata.extend(table.map(|table| (SAYS.to_owned(), table.says.to_owned())));
        let writer = ParquetWriter::new(out)
            .with_compression(ParquetCompression::Zstd(None))
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(metadata)))
            .batched(schema)?;
        Ok(Self::Parquet(Box::new(writer)))
    }

    /// Begins an Arrow file (IPC) for frames of this schema.
    pub(crate) fn arrow(
        out: W,
        schema: &Schema,
        table: Option<&TableSchema>,
    ) -> Result<Self, TableError> {
        let options = WriteOptions { compression: Some(Compression::ZSTD(Default::default())) };
        let schema = Arc::new(described(schema, table));
        Ok(Self::Arrow(Box::new(FileWriter::try_new(out, schema, None, options)?)))
    }

    /// Adds rows: a row group of Parquet, a record batch of Arrow.
    pub(crate) fn write(&mut self, rows: &mut DataFrame) -> Result<(), TableError> {
        if rows.height() == 0 {
            return Ok(());
        }
        rows.rechunk_mut_par();
        match self {
            Self::Parquet(writer) => writer.write_batch(rows)?,
            Self::Arrow(writer) => {
                for batch in rows.iter_chunks(compat(), true) {
                    writer.write(&batch, None)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<(), TableError> {
        match self {
            Self::Parquet(writer) => {
                writer.finish()?;
            }
            Self::Arrow(mut writer) => writer.finish()?,
        }
        Ok(())
    }
}

/// Writes a frame as Parquet, whole.
pub(crate) fn parquet(frame: &DataFrame, out: impl Write) -> Result<(), TableError> {
    let mut file = TableFile::parquet(out, frame.schema(), None)?;
    file.write(&mut frame.clone())?;
    file.finish()
}
