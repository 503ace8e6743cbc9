//! `proctrace export`: writes recordings as files for other tools: their tables, or what viewers show.

mod o2dpg;
mod prmon;
mod steps;
mod viewer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{Batch, Columnar, ColumnarFile, TableError, TableSchema, batches};
use proctrace_outputs::{Access, Directory, Failure, NewFile, Watched};
use proctrace_report::number::{bytes, count, counted};
use proctrace_report::{CsvDialect, rows_csv, rows_csv_names, rows_ndjson};

use crate::args::{ExportArgs, TablesFormat};
use crate::query::{names, without_repetitions};
use crate::waiting::during;
use crate::{incomplete, invoker, rules, say};

pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode> {
    if let Some(format) = viewer::format_of(args)? {
        return viewer::run(args, format);
    }
    let mut traces = args.traces.clone();
    without_repetitions(&mut traces);
    if args.format == TablesFormat::O2dpg {
        return o2dpg::write(&args.output, &traces, &args.rules);
    }
    if let Some(what) = steps::Of::format(args.format) {
        return steps::write(&args.output, &traces, what, &args.rules);
    }
    let Some(format) = Format::of(args) else {
        return prmon::write(&args.output, &traces, &args.rules);
    };
    let mut export = Export::new(format);
    for (trace, name) in traces.iter().zip(names(&traces)) {
        let recording = rules::load_any(trace, &args.rules)?;
        export.create_directory(&args.output)?;
        incomplete::warn(trace, &recording);
        let write = || batches(&recording, trace, &name, |table, batch| export.add(table, batch));
        during("writing tables", write)?;
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
    Csv(CsvDialect),
    Ndjson,
}

impl Format {
    fn of(args: &ExportArgs) -> Option<Self> {
        Some(match args.format {
            TablesFormat::Parquet => Self::Columnar(Columnar::Parquet),
            TablesFormat::Arrow => Self::Columnar(Columnar::Arrow),
            TablesFormat::Csv => Self::Csv(args.csv.dialect()),
            TablesFormat::Ndjson => Self::Ndjson,
            _ => return None,
        })
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Columnar(Columnar::Parquet) => "parquet",
            Self::Columnar(Columnar::Arrow) => "arrow",
            Self::Csv(_) => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

/// The files being written.
struct Export {
    /// Once there is something to write.
    directory: Option<Directory>,
    format: Format,
    files: BTreeMap<&'static str, TableFile>,
}

/// The file of one table. It gets its name when it is complete.
struct TableFile {
    new: NewFile,
    rows: u64,
    body: Body,
    failure: Failure,
}

enum Body {
    Columnar(Box<ColumnarFile<BufWriter<Watched<File>>>>),
    Csv(BufWriter<Watched<File>>, CsvDialect),
    Ndjson(BufWriter<Watched<File>>),
}

/// The reason why a table was not written, of which columnar formats say only that there is one.
fn behind(failure: &Failure, error: TableError) -> anyhow::Error {
    failure.take().map_or_else(|| error.into(), Into::into)
}

impl Export {
    fn new(format: Format) -> Self {
        Self { directory: None, format, files: BTreeMap::new() }
    }

    fn create_directory(&mut self, path: &Path) -> Result<()> {
        if self.directory.is_none() {
            let directory = invoker::outputs().create_directory(path, Access::Umask);
            let cannot = || format!("cannot create {}", path.display());
            self.directory = Some(directory.with_context(cannot)?);
        }
        Ok(())
    }

    fn add(&mut self, table: &'static TableSchema, batch: Batch) -> Result<()> {
        let file = match self.files.get_mut(table.name) {
            Some(file) => file,
            None => {
                let directory = self.directory.as_ref().context("there is no directory")?;
                let file = TableFile::begin(directory, self.format, table, &batch)?;
                self.files.entry(table.name).or_insert(file)
            }
        };
        let context = || format!("cannot write {}", file.new.final_path().display());
        let behind = |error| behind(&file.failure, error);
        file.rows += batch.height() as u64;
        match &mut file.body {
            Body::Columnar(body) => body.write(batch).map_err(behind).with_context(context)?,
            Body::Csv(body, dialect) => {
                rows_csv(&batch.rows()?, *dialect, body).with_context(context)?
            }
            Body::Ndjson(body) => rows_ndjson(&batch.rows()?, body).with_context(context)?,
        }
        Ok(())
    }

    /// Completes all files; returns their number, rows and bytes.
    fn finish(self) -> Result<(u64, u64, u64)> {
        let (mut tables, mut rows, mut written) = (0, 0, 0);
        for TableFile { new, rows: of_table, body, failure } in self.files.into_values() {
            let path = new.final_path().to_owned();
            let context = || format!("cannot write {}", path.display());
            match body {
                Body::Columnar(body) => {
                    body.finish().map_err(|error| behind(&failure, error)).with_context(context)?;
                }
                Body::Csv(mut body, _) | Body::Ndjson(mut body) => {
                    body.flush().with_context(context)?;
                }
            }
            written += new.file().metadata().with_context(context)?.len();
            new.commit().with_context(context)?;
            tables += 1;
            rows += of_table;
        }
        Ok((tables, rows, written))
    }
}

impl TableFile {
    fn begin(
        directory: &Directory,
        format: Format,
        table: &TableSchema,
        like: &Batch,
    ) -> Result<Self> {
        let ending = format.ending();
        let name = format!("{}.{ending}", table.name);
        let context = || format!("cannot write {}", directory.path().join(&name).display());
        let new = directory.create(&name, Access::Owner).with_context(context)?;
        let failure = Failure::default();
        let file = new.writer().with_context(context)?;
        let mut out = BufWriter::new(failure.of(file));
        let body = match format {
            Format::Columnar(columnar) => {
                let file = ColumnarFile::begin(out, columnar, table, like);
                let file = file.map_err(|error| behind(&failure, error)).with_context(context)?;
                Body::Columnar(Box::new(file))
            }
            Format::Csv(dialect) => {
                rows_csv_names(&like.rows()?, dialect, &mut out).with_context(context)?;
                Body::Csv(out, dialect)
            }
            Format::Ndjson => Body::Ndjson(out),
        };
        Ok(Self { new, rows: 0, body, failure })
    }
}
