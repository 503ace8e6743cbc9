//! Output to stdout: tables in the requested format, and verdicts.

use std::io::Write;

use anyhow::Result;
use proctrace_findings::Table;
use proctrace_report::{CsvDialect, Style, escape, table_csv, table_json, table_text};
use serde::Serialize;

use crate::args::SectionFormat;
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
pub(crate) fn json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    out.write_all(escape::json(&text).as_bytes())?;
    Ok(out.write_all(b"\n")?)
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
