//! `proctrace query`: SQL over the tables of recordings.

use std::ffi::OsStr;
use std::io::{BufWriter, IsTerminal, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Answer, Query, QueryError, TABLES, TableSchema};
use proctrace_report::{CsvDialect, Style, fit, rows_text};
use proctrace_trace::is_trace;

use crate::args::{DEFAULT_TRACE, QueryArgs, RowsFormat};
use crate::ceiling::Ceiling;
use crate::exit_code::Misuse;
use crate::waiting::during;
use crate::{incomplete, print, rules, whole};

/// Number of rows converted to text at a time.
const ROWS_AT_A_TIME: usize = 1 << 14;

pub(crate) fn run(args: &QueryArgs) -> Result<ExitCode> {
    let Some((sql, traces)) = asked(args)? else { return list_tables() };
    match described(&sql) {
        Some(Described::All) => return list_tables(),
        Some(Described::Columns(tables)) => return list_columns(&tables),
        None => {}
    }
    let format = format_of(args);
    if format == RowsFormat::Parquet && args.output.is_none() && stdout().is_terminal() {
        bail!(Misuse("Parquet cannot be printed to a terminal: use -o FILE".to_owned()));
    }
    if let Some(path) = &args.output {
        refuse_traces(path)?;
    }
    let mut query = Query::new(&sql).map_err(misuse)?;
    let least_bytes = traces.iter().try_fold(0u64, |sum, trace| -> Result<u64> {
        Ok(sum.saturating_add(query.least_bytes(trace).map_err(misuse)?))
    })?;
    Ceiling::check(&args.rules.ceiling, &traces, least_bytes)?;
    for (trace, name) in traces.iter().zip(names(&traces)) {
        let recording = rules::load_any(trace, &args.rules)?;
        incomplete::warn(trace, &recording);
        during("making tables", || query.add(&name, &recording, trace)).map_err(misuse)?;
    }
    let answer = during("answering", || query.answer()).map_err(misuse)?;
    let dialect = args.csv.dialect();
    match &args.output {
        Some(path) => {
            whole::fill(path, |out| put(&answer, (format, dialect), print::style(None), out))?;
        }
        None => {
            let mut out = BufWriter::new(stdout().lock());
            let style = print::style((!args.all).then_some(args.top));
            put(&answer, (format, dialect), style, &mut out)?;
            out.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses to overwrite a recording that was named as the output by mistake.
pub(crate) fn refuse_traces(path: &Path) -> Result<()> {
    if is_trace(path) {
        bail!(Misuse(format!("{} is a recording, and would be overwritten", path.display())));
    }
    Ok(())
}

fn format_of(args: &QueryArgs) -> RowsFormat {
    let ending = args.output.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    args.format.unwrap_or(match ending {
        Some("csv") => RowsFormat::Csv,
        Some("json") => RowsFormat::Json,
        Some("ndjson" | "jsonl") => RowsFormat::Ndjson,
        Some("parquet") => RowsFormat::Parquet,
        _ => RowsFormat::Text,
    })
}

/// Subject that a text asks to describe.
enum Described {
    /// The list of tables.
    All,
    /// The columns of these.
    Columns(Vec<TableSchema>),
}

/// Returns what a text asks to describe, in the common notations: a name, `DESCRIBE processes`, `SHOW TABLES`,
/// `SHOW COLUMNS`.
fn described(sql: &str) -> Option<Described> {
    let sql = sql.trim().trim_end_matches(';').to_ascii_lowercase();
    let words: Vec<&str> = sql.split_whitespace().collect();
    match words[..] {
        ["show", "tables"] => Some(Described::All),
        ["show", "columns"] => Some(Described::Columns(TABLES.to_vec())),
        ["describe" | "desc", name] | ["show", "columns", "from", name] | [name] => {
            TableSchema::named(name).map(|table| Described::Columns(vec![*table]))
        }
        _ => None,
    }
}

/// Errors in the SQL are errors in the arguments.
fn misuse(error: QueryError) -> anyhow::Error {
    match error {
        QueryError::Recording(error) => error.into(),
        error => Misuse(error.to_string()).into(),
    }
}

/// The SQL and the traces; None if both are missing.
fn asked(args: &QueryArgs) -> Result<Option<(String, Vec<PathBuf>)>> {
    let (sql, rest) = match (&args.sql_file, args.arguments.split_first()) {
        (Some(path), _) => (read_sql(path)?, &args.arguments[..]),
        (None, Some((sql, rest))) => (text_of(sql)?, rest),
        (None, None) => return Ok(None),
    };
    let mut traces: Vec<PathBuf> = rest.iter().map(PathBuf::from).collect();
    without_repetitions(&mut traces);
    if traces.is_empty() {
        traces.push(DEFAULT_TRACE.into());
    }
    Ok(Some((sql, traces)))
}

fn text_of(sql: &OsStr) -> Result<String> {
    match sql.to_str() {
        Some(text) if !Path::new(text).is_file() => Ok(text.to_owned()),
        Some(path) => bail!(Misuse(format!(
            "{path} is a file where SQL is expected: use proctrace query 'SELECT …' {path}, or -f \
             for a file that contains SQL"
        ))),
        None => bail!(Misuse("the SQL is not valid UTF-8".to_owned())),
    }
}

fn read_sql(path: &Path) -> Result<String> {
    let mut sql = String::new();
    if path == Path::new("-") {
        stdin().read_to_string(&mut sql).context("cannot read SQL from standard input")?;
    } else {
        sql = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(sql)
}

/// A trace that is named twice is one recording.
pub(crate) fn without_repetitions(traces: &mut Vec<PathBuf>) {
    let mut seen = std::collections::BTreeSet::new();
    traces.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
}

/// The names of recordings: their files without directory and extension, if those are unique.
pub(crate) fn names(traces: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| path.to_string_lossy().into_owned();
    let stem = |path: &PathBuf| {
        path.file_stem().map_or_else(|| whole(path), |stem| stem.to_string_lossy().into_owned())
    };
    let stems: Vec<String> = traces.iter().map(stem).collect();
    let is_unique = |name: &String| stems.iter().filter(|stem| *stem == name).count() == 1;
    stems
        .iter()
        .zip(traces)
        .map(|(stem, path)| if is_unique(stem) { stem.clone() } else { whole(path) })
        .collect()
}

fn put(
    answer: &Answer,
    (format, dialect): (RowsFormat, CsvDialect),
    style: Style,
    out: &mut impl Write,
) -> Result<()> {
    let all = answer.height();
    match format {
        RowsFormat::Text => {
            let rows = answer.rows(0, style.rows.min(all))?;
            out.write_all(rows_text(&rows, all, style).as_bytes())?;
        }
        RowsFormat::Parquet => {
            // Written in one call, so that a pipe closed by the reader is distinguishable from
            // other errors.
            let mut file = Vec::new();
            answer.parquet(&mut file)?;
            out.write_all(&file)?;
        }
        RowsFormat::Csv | RowsFormat::Ndjson | RowsFormat::Json => {
            let parts = (0..all).step_by(ROWS_AT_A_TIME);
            let parts = parts.map(|from| Ok(answer.rows(from, ROWS_AT_A_TIME)?));
            print::rows((format, dialect), &answer.rows(0, 0)?, parts, out)?;
        }
    }
    Ok(())
}

/// One screen: the tables, and how to learn more.
fn list_tables() -> Result<ExitCode> {
    let mut out = stdout().lock();
    let widest = TABLES.iter().map(|table| table.name.len()).max().unwrap_or(0) + 2;
    for table in TABLES {
        let says = table.says.split_inclusive(". ").next().unwrap_or(table.says);
        let room = print::width().saturating_sub(widest);
        writeln!(out, "{:widest$}{}", table.name, cut(says.trim_end_matches(['.', ' ']), room))?;
    }
    writeln!(out, "\nproctrace query TABLE: its columns; 'show columns': those of all tables")?;
    Ok(ExitCode::SUCCESS)
}

/// A sentence, cut between words where it is too long.
fn cut(text: &str, columns: usize) -> String {
    if fit::columns(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for word in text.split(' ') {
        if fit::columns(&cut) + fit::columns(word) + 2 > columns {
            break;
        }
        cut.push_str(if cut.is_empty() { "" } else { " " });
        cut.push_str(word);
    }
    format!("{}…", cut.trim_end_matches([',', ';', ':']))
}

fn list_columns(tables: &[TableSchema]) -> Result<ExitCode> {
    let mut out = stdout().lock();
    for (at, table) in tables.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        for line in print::wrapped(&format!("{}: {}", table.name, table.says), 0) {
            writeln!(out, "{line}")?;
        }
        for column in table.columns {
            let head = format!("  {:24}{:18}", column.name, column.kind.sql());
            let mut lines = print::wrapped(column.says, head.len()).into_iter();
            writeln!(out, "{head}{}", lines.next().unwrap_or_default())?;
            for line in lines {
                writeln!(out, "{}{line}", " ".repeat(head.len()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_one_name_are_told_apart() {
        let names = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["a/one.ptrace", "b/two.ptrace"]), ["one", "two"]);
        assert_eq!(names(&["a/x.ptrace", "b/x.ptrace", "y"]), ["a/x.ptrace", "b/x.ptrace", "y"]);
    }
}
