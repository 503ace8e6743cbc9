//! Query results as text, JSON, NDJSON and CSV.

use std::io::{self, Write};

use proctrace_findings::{Rows, RowsValues, counted};
use serde_json::{Value, json};

use crate::escape::{csv, json as escape_json, terminal};
use crate::fit::{at_left, columns, pieces};
use crate::style::Style;
use crate::table::{Align, Table};

/// Text for a terminal, with numbers as the query returned them, since their units depend on the
/// query. `all` is the total number of rows, of which `rows` are the first.
pub fn rows_text(rows: &Rows, all: usize, style: Style) -> String {
    let columns: Vec<(String, Align)> = rows
        .columns
        .iter()
        .map(|column| {
            let align = match column.values {
                RowsValues::Text(_) | RowsValues::Texts(_) => Align::Left,
                _ => Align::Right,
            };
            (terminal(&column.name).into_owned(), align)
        })
        .collect();
    let mut table = Table::new(&columns).without_prefixes();
    for row in 0..rows.height().min(style.rows) {
        table.row(rows.columns.iter().map(|column| cell_text(&column.values, row)));
    }
    let mut out = match table.fits(style.width) {
        true => table.lines(style.width).iter().map(|line| format!("{line}\n")).collect(),
        false => one_by_one(rows, style),
    };
    let shown = rows.height().min(style.rows);
    if all == 0 {
        out.push_str("  no rows\n");
    } else if shown < all {
        let more = counted((all - shown) as u64, "more row", "more rows");
        out.push_str(&format!("  … {more}: --all, --top N, or LIMIT\n"));
    }
    out
}

/// Text of rows with too many columns for a table: one line per column and value.
fn one_by_one(rows: &Rows, style: Style) -> String {
    let names: Vec<String> =
        rows.columns.iter().map(|column| terminal(&column.name).into_owned()).collect();
    let widest = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let mut out = String::new();
    for row in 0..rows.height().min(style.rows) {
        if row > 0 {
            out.push('\n');
        }
        for (name, column) in names.iter().zip(&rows.columns) {
            let value = cell_text(&column.values, row);
            let room = style.width.saturating_sub(widest + 4).max(8);
            for (at, part) in pieces(&value, room).enumerate() {
                match at {
                    _ if part.is_empty() => out.push_str(&format!("  {name}\n")),
                    0 => out.push_str(&format!("  {}  {part}\n", at_left(name, widest))),
                    _ => out.push_str(&format!("  {}  {part}\n", " ".repeat(widest))),
                }
            }
        }
    }
    out
}

fn cell_text(values: &RowsValues, row: usize) -> String {
    fn at<T>(values: &[Option<T>], row: usize, text: impl Fn(&T) -> String) -> String {
        values.get(row).and_then(Option::as_ref).map_or_else(|| "-".to_owned(), text)
    }
    match values {
        RowsValues::Text(values) => at(values, row, |text| terminal(text).into_owned()),
        RowsValues::Signed(values) => at(values, row, i64::to_string),
        RowsValues::Whole(values) => at(values, row, u64::to_string),
        RowsValues::Real(values) => at(values, row, |number| real(*number)),
        RowsValues::Flag(values) => at(values, row, bool::to_string),
        RowsValues::Texts(values) => {
            at(values, row, |texts| terminal(&json!(texts).to_string()).into_owned())
        }
    }
}

/// Four decimals are enough for display; --format json has full precision.
fn real(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e15).contains(&size) => format!("{number:.4e}"),
        _ => {
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

fn value(values: &RowsValues, row: usize) -> Value {
    match values {
        RowsValues::Text(values) => json!(values.get(row)),
        RowsValues::Signed(values) => json!(values.get(row)),
        RowsValues::Whole(values) => json!(values.get(row)),
        RowsValues::Real(values) => json!(values.get(row)),
        RowsValues::Flag(values) => json!(values.get(row)),
        RowsValues::Texts(values) => json!(values.get(row)),
    }
}

/// Writes rows as NDJSON, one JSON object per line.
///
/// # Errors
/// When `out` cannot be written.
pub fn rows_ndjson(rows: &Rows, out: &mut dyn Write) -> io::Result<()> {
    rows_objects(rows, |object| {
        out.write_all(object.as_bytes())?;
        out.write_all(b"\n")
    })
}

/// Writes rows as JSON objects separated by commas: the contents of an array. `first` is true while
/// no row has been written, and is cleared by the first row.
///
/// # Errors
/// When `out` cannot be written.
pub fn rows_json(rows: &Rows, first: &mut bool, out: &mut dyn Write) -> io::Result<()> {
    rows_objects(rows, |object| {
        out.write_all(if std::mem::take(first) { b"\n  " } else { b",\n  " })?;
        out.write_all(object.as_bytes())
    })
}

fn rows_objects(rows: &Rows, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    for row in 0..rows.height() {
        // Keeps the column order of the query, which a map would not.
        let cells = rows.columns.iter().map(|column| {
            format!("{}:{}", Value::from(column.name.as_str()), value(&column.values, row))
        });
        let object = format!("{{{}}}", cells.collect::<Vec<_>>().join(","));
        each(&escape_json(&object))?;
    }
    Ok(())
}

/// Dialect of CSV: how lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvDialect {
    /// With LF, as other programs of Unix read and write lines: sort(1), comm(1), `read`.
    Unix,
    /// With CR LF, as in RFC 4180.
    Rfc4180,
}

impl CsvDialect {
    /// The end of a line.
    pub fn end(self) -> &'static str {
        match self {
            Self::Unix => "\n",
            Self::Rfc4180 => "\r\n",
        }
    }
}

/// Writes the column names as a CSV header.
///
/// # Errors
/// When `out` cannot be written.
pub fn rows_csv_names(rows: &Rows, dialect: CsvDialect, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<String> = rows.columns.iter().map(|column| csv(&column.name)).collect();
    write!(out, "{}{}", names.join(","), dialect.end())
}

/// Writes rows as CSV, like [`crate::table_csv`]; lists are written as JSON.
///
/// # Errors
/// When `out` cannot be written.
pub fn rows_csv(rows: &Rows, dialect: CsvDialect, out: &mut dyn Write) -> io::Result<()> {
    for row in 0..rows.height() {
        for (at, column) in rows.columns.iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            match value(&column.values, row) {
                Value::Null => {}
                Value::String(text) => out.write_all(csv(&text).as_bytes())?,
                list @ Value::Array(_) => out.write_all(csv(&list.to_string()).as_bytes())?,
                plain => write!(out, "{plain}")?,
            }
        }
        out.write_all(dialect.end().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::RowsColumn;

    fn rows() -> Rows {
        let column = |name: &str, values| RowsColumn { name: name.into(), values };
        Rows {
            columns: vec![
                column("name", RowsValues::Text(vec![Some("=a\u{1b}[1m".into()), None])),
                column("n", RowsValues::Whole(vec![Some(u64::MAX), Some(2)])),
                column("share", RowsValues::Real(vec![Some(0.123_456), None])),
                column("argv", RowsValues::Texts(vec![Some(vec!["a".into(), "b c".into()]), None])),
            ],
        }
    }

    #[test]
    fn text_shows_what_is_left_out_and_no_control_characters() {
        let text = rows_text(&rows(), 7, Style { width: 80, rows: 1, ..Style::default() });
        assert!(!text.contains('\u{1b}') && text.contains("0.1235"), "{text}");
        assert!(text.contains("18446744073709551615") && text.contains("6 more rows"), "{text}");
        assert!(rows_text(&Rows::default(), 0, Style::default()).contains("no rows"));
    }

    #[test]
    fn what_is_too_wide_for_a_table_is_told_line_by_line() {
        let column = |at: usize| RowsColumn {
            name: format!("column_{at}"),
            values: RowsValues::Text(vec![Some("a long text of some words".into()); 2]),
        };
        let rows = Rows { columns: (0..20).map(column).collect() };
        let text = rows_text(&rows, 2, Style { width: 80, rows: 9, ..Style::default() });
        assert!(text.contains("  column_7   a long text of some words\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.lines().count(), 41);
    }

    #[test]
    fn json_comes_back() {
        let (mut out, mut first) = (Vec::new(), true);
        rows_json(&rows(), &mut first, &mut out).unwrap();
        let text = format!("[{}]", String::from_utf8(out).unwrap());
        assert!(!text.contains('\u{1b}'));
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back[0]["name"], "=a\u{1b}[1m");
        assert_eq!(back[0]["n"], u64::MAX);
        assert_eq!(back[1]["share"], Value::Null);
        assert_eq!(back[0]["argv"][1], "b c");
        let mut lines = Vec::new();
        rows_ndjson(&rows(), &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(lines.lines().count(), 2);
        assert!(lines.starts_with("{\"name\":"), "{lines}");
    }

    #[test]
    fn csv_has_no_formula() {
        let text = |dialect| {
            let mut out = Vec::new();
            rows_csv_names(&rows(), dialect, &mut out).unwrap();
            rows_csv(&rows(), dialect, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(CsvDialect::Unix), text(CsvDialect::Rfc4180).replace('\r', ""));
        assert_eq!(
            text(CsvDialect::Rfc4180),
            "name,n,share,argv\r\n'=a\\x1b[1m,18446744073709551615,0.123456,\"[\"\"a\"\",\"\"b c\"\"]\"\r\n,2,,\r\n"
        );
    }
}
