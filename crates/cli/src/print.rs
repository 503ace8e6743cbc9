//! Output to stdout: tables in the requested format, and verdicts.

use std::borrow::Borrow;
use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_findings::{Rows, Table};
use proctrace_report::escape::json_text;
use proctrace_report::{
    CsvDialect, Style, rows_csv, rows_csv_names, rows_json, rows_ndjson, table_csv, table_json,
    table_text,
};
use serde::Serialize;

use crate::args::{CsvArgs, RowsFormat, SectionFormat};
use crate::pager;

/// The text layout, with at most this number of rows per table; None for all.
pub(crate) fn style(rows: Option<usize>) -> Style {
    let terminal = pager::terminal();
    Style {
        width: width(),
        lines: terminal.map_or(LINES_MIN, |(_, lines)| lines.max(LINES_MIN)),
        rows: rows.unwrap_or(usize::MAX),
        // no-color.org: any non-empty value
        colour: terminal.is_some()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Lines of the smallest screen; output that is no terminal's has so many.
const LINES_MIN: usize = 24;

/// Range of table widths; much longer lines are hard to follow.
const WIDTHS: std::ops::RangeInclusive<usize> = 80..=200;

/// The width of the terminal; otherwise the minimum width, so that output to a file is the same
/// everywhere.
pub(crate) fn width() -> usize {
    let (least, most) = (*WIDTHS.start(), *WIDTHS.end());
    let columns = pager::terminal().map_or(least, |(columns, _)| columns);
    columns.clamp(least, most)
}

/// Text wrapped to the width that remains right of `left` columns.
pub(crate) fn wrapped(words: &str, left: usize) -> Vec<String> {
    proctrace_report::fit::wrap(words, width().saturating_sub(left))
}

/// A value as indented JSON, with control characters escaped.
fn json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    Ok(out.write_all(json_text(value)?.as_bytes())?)
}

/// The answer of a command: a text, or a value as JSON.
pub(crate) fn answer(
    as_json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<ExitCode> {
    let text = if as_json { json_text(value)? } else { text() };
    raw(text.as_bytes())
}

/// The answer of a command as it is; text for a shell may contain bytes that are not UTF-8.
pub(crate) fn raw(text: &[u8]) -> Result<ExitCode> {
    let mut out = stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The answer of a command as tables.
pub(crate) fn table_answer(
    tables: &[Table],
    (format, csv): (SectionFormat, &CsvArgs),
    style: Style,
) -> Result<ExitCode> {
    let mut out = stdout().lock();
    self::tables(&mut out, tables, format, csv.dialect(), style)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Rows, part by part, as CSV, JSON or its lines. `names` has the same columns.
pub(crate) fn rows<R: Borrow<Rows>>(
    (format, dialect): (RowsFormat, CsvDialect),
    names: &Rows,
    parts: impl IntoIterator<Item = Result<R>>,
    out: &mut impl Write,
) -> Result<()> {
    let mut first = true;
    match format {
        RowsFormat::Csv => rows_csv_names(names, dialect, out)?,
        RowsFormat::Json => out.write_all(b"[")?,
        _ => {}
    }
    for part in parts {
        let part = part?;
        match format {
            RowsFormat::Csv => rows_csv(part.borrow(), dialect, out)?,
            RowsFormat::Json => rows_json(part.borrow(), &mut first, out)?,
            _ => rows_ndjson(part.borrow(), out)?,
        }
    }
    if format == RowsFormat::Json {
        out.write_all(if first { b"]\n" } else { b"\n]\n" })?;
    }
    Ok(())
}

/// One table after the other.
pub(crate) fn tables(
    out: &mut impl Write,
    tables: &[Table],
    format: SectionFormat,
    dialect: CsvDialect,
    style: Style,
) -> Result<()> {
    match format {
        SectionFormat::Json => {
            let tables: Vec<_> = tables.iter().map(table_json).collect();
            json(out, &tables)?;
        }
        SectionFormat::Csv => {
            for (at, table) in tables.iter().enumerate() {
                if at > 0 {
                    out.write_all(dialect.end().as_bytes())?;
                }
                table_csv(table, dialect, out)?;
            }
        }
        SectionFormat::Text => {
            for (at, table) in tables.iter().enumerate() {
                if at > 0 {
                    out.write_all(b"\n")?;
                }
                out.write_all(table_text(table, style).as_bytes())?;
            }
        }
    }
    Ok(())
}
