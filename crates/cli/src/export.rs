//! `proctrace export`: writes recordings as files for other tools: their tables, or what viewers show.

mod prmon;
mod viewer;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{AnalysisError, Batch, Columnar, ColumnarFile, TableSchema, batches};
use proctrace_report::number::{bytes, count, counted};
use proctrace_report::{CsvDialect, rows_csv, rows_csv_names, rows_ndjson};

use crate::args::{ExportArgs, TablesFormat};
use crate::query::{names, private, without_repetitions};
use crate::{check, rules, say};

pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    if let Some(format) = viewer::format_of(args)? {
        return viewer::run(args, format);
    }
    let mut traces = args.traces.clone();
    without_repetitions(&mut traces);
    let Some(format) = Format::of(args.format) else {
        return prmon::write(&args.output, &traces, &args.rules);
    };
    let mut export = Export::new(&args.output, format);
    for (trace, name) in traces.iter().zip(names(&traces)) {
        let recording = rules::load(trace, &args.rules)?;
        fs::create_dir_all(&args.output)
            .with_context(|| format!("cannot create {}", args.output.display()))?;
        check::warn(trace, &recording);
        batches(&recording, trace, &name, |table, batch| export.add(table, batch))
            .map_err(|Failed(error)| error)?;
    }
    let (tables, rows, written) = export.finish()?;
    say::note(&format!(
        "{} with {} rows ({}) written to {}",
        counted(tables, "table", "tables"),
        count(rows),
        bytes(written),
        args.output.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// A format of tables.
#[derive(Debug, Clone, Copy)]
enum Format {
    Columnar(Columnar),
    Csv,
    Ndjson,
}

impl Format {
    fn of(format: TablesFormat) -> Option<Self> {
        Some(match format {
            TablesFormat::Parquet => Self::Columnar(Columnar::Parquet),
            TablesFormat::Arrow => Self::Columnar(Columnar::Arrow),
            TablesFormat::Csv => Self::Csv,
            TablesFormat::Ndjson => Self::Ndjson,
            _ => return None,
        })
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Columnar(Columnar::Parquet) => "parquet",
            Self::Columnar(Columnar::Arrow) => "arrow",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

/// Why a batch was not accepted.
struct Failed(anyhow::Error);

impl From<AnalysisError> for Failed {
    fn from(error: AnalysisError) -> Self {
        Self(error.into())
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

/// The files being written.
struct Export<'a> {
    directory: &'a Path,
    format: Format,
    files: BTreeMap<&'static str, TableFile>,
}

/// The file of one table. It is renamed to its final name when it is complete.
struct TableFile {
    path: PathBuf,
    part: Part,
    rows: u64,
    body: Body,
}

/// An incomplete file. A failure removes it, as it would be unreadable.
struct Part {
    path: PathBuf,
    whole: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.whole {
            // The cause of the failure has been reported already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

enum Body {
    Columnar(Box<ColumnarFile<BufWriter<File>>>),
    Csv(BufWriter<File>),
    Ndjson(BufWriter<File>),
}

impl<'a> Export<'a> {
    fn new(directory: &'a Path, format: Format) -> Self {
        Self { directory, format, files: BTreeMap::new() }
    }

    fn add(&mut self, table: &'static TableSchema, batch: Batch) -> Result<(), Failed> {
        let file = match self.files.get_mut(table.name) {
            Some(file) => file,
            None => {
                let file = TableFile::begin(self.directory, self.format, table, &batch)?;
                self.files.entry(table.name).or_insert(file)
            }
        };
        let context = || format!("cannot write {}", file.part.path.display());
        file.rows += batch.height() as u64;
        match &mut file.body {
            Body::Columnar(body) => body.write(batch).with_context(context)?,
            Body::Csv(body) => {
                rows_csv(&batch.rows()?, CsvDialect::Rfc4180, body).with_context(context)?
            }
            Body::Ndjson(body) => rows_ndjson(&batch.rows()?, body).with_context(context)?,
        }
        Ok(())
    }

    /// Completes all files; returns their number, rows and bytes.
    fn finish(self) -> Result<(u64, u64, u64)> {
        let (mut tables, mut rows, mut written) = (0, 0, 0);
        for mut file in self.files.into_values() {
            let context = || format!("cannot write {}", file.path.display());
            match file.body {
                Body::Columnar(body) => body.finish().with_context(context)?,
                Body::Csv(mut body) | Body::Ndjson(mut body) => {
                    body.flush().with_context(context)?;
                }
            }
            fs::rename(&file.part.path, &file.path).with_context(context)?;
            file.part.whole = true;
            tables += 1;
            rows += file.rows;
            written += fs::metadata(&file.path).with_context(context)?.len();
        }
        Ok((tables, rows, written))
    }
}

impl TableFile {
    fn begin(
        directory: &Path,
        format: Format,
        table: &TableSchema,
        like: &Batch,
    ) -> Result<Self, Failed> {
        let ending = format.ending();
        let path = directory.join(format!("{}.{ending}", table.name));
        let part =
            Part { path: directory.join(format!(".{}.{ending}.part", table.name)), whole: false };
        let context = || format!("cannot write {}", part.path.display());
        let mut out = BufWriter::new(private(&part.path).with_context(context)?);
        let body = match format {
            Format::Columnar(columnar) => {
                Body::Columnar(Box::new(ColumnarFile::begin(out, columnar, table, like)?))
            }
            Format::Csv => {
                rows_csv_names(&like.rows()?, CsvDialect::Rfc4180, &mut out)
                    .with_context(context)?;
                Body::Csv(out)
            }
            Format::Ndjson => Body::Ndjson(out),
        };
        Ok(Self { path, part, rows: 0, body })
    }
}
