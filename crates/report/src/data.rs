//! A table as text for people, as JSON and as CSV for programs.

use std::io;

use proctrace_findings::{Cell, Column, Table, Unit, figure};
use serde_json::{Map, Value, json};

use crate::escape::{csv, markdown, markdown_paragraph, terminal};
use crate::fit::wrap;
use crate::number::{bytes, count, counted, share, time};
use crate::rows::CsvDialect;
use crate::style::Style;
use crate::table::{Align, Table as Columns};

/// Text for a terminal: values with their units, notes below.
pub fn table_text(table: &Table, style: Style) -> String {
    let shown = if table.whole { table.height() } else { table.height().min(style.rows) };
    let shown_columns: Vec<&Column> =
        table.columns.iter().filter(|column| !column.detail).collect();
    let columns: Vec<(&'static str, Align)> = shown_columns
        .iter()
        .map(|column| {
            let align = match column.unit {
                Unit::Text => Align::Left,
                Unit::List => Align::List,
                _ => Align::Right,
            };
            (column.title, align)
        })
        .collect();
    let mut out = format!("{}\n", style.bold(&terminal(&table.title)));
    if table.height() == 0 {
        out.push_str("  none\n");
    } else {
        let mut rows = Columns::new(&columns);
        for row in table.shown(shown) {
            rows.row(shown_columns.iter().map(|column| {
                interval_text(table, column, row).unwrap_or_else(|| cell_text(column, row))
            }));
        }
        for line in rows.lines(style.width) {
            out.push_str(&line);
            out.push('\n');
        }
        if shown < table.height() {
            let more = more_rows(table, shown);
            out.push_str(&format!("  … {more}: --all, or --top N\n"));
        }
    }
    for note in &table.notes {
        for line in wrap(&terminal(note), style.width.saturating_sub(2)) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out
}

/// "3 more rows"; "3 smaller rows" if those shown were chosen by size.
fn more_rows(table: &Table, shown: usize) -> String {
    let more = (table.height() - shown) as u64;
    match table.shown_by {
        None => counted(more, "more row", "more rows"),
        Some(_) => counted(more, "smaller row", "smaller rows"),
    }
}

/// The interval of a share with too few samples: "48-89 %".
fn interval_text(table: &Table, column: &Column, row: usize) -> Option<String> {
    if column.values.get(row) != Cell::Missing {
        return None;
    }
    let stem = column.name.strip_suffix("_percent")?;
    let end = |which: &str| match table.named(&format!("{stem}_{which}_percent"))?.values.get(row) {
        Cell::Real(percent) => Some(percent),
        _ => None,
    };
    Some(share(None, Some((end("low")?, end("high")?))))
}

/// One value with its unit; "-" if missing.
pub(crate) fn cell_text(column: &Column, row: usize) -> String {
    match column.values.get(row) {
        Cell::Missing => "-".to_owned(),
        Cell::Text(text) => terminal(text).into_owned(),
        Cell::Flag(yes) => if yes { "yes" } else { "no" }.to_owned(),
        Cell::Whole(number) => match column.unit {
            Unit::Nanoseconds => time(number),
            Unit::Bytes => bytes(number),
            Unit::Percent => format!("{number} %"),
            // An identifier such as a pid takes no thousands separators.
            Unit::Text => number.to_string(),
            _ => count(number),
        },
        Cell::Real(number) => figure(number, column.unit),
    }
}

/// Name, title, notes, units by column, and an object for each row.
pub fn table_json(table: &Table) -> Value {
    let rows: Vec<Value> = (0..table.height())
        .map(|row| {
            let cells = table.columns.iter().map(|column| {
                let value = match column.values.get(row) {
                    Cell::Missing => Value::Null,
                    Cell::Text(text) => json!(text),
                    Cell::Whole(number) => json!(number),
                    Cell::Real(number) => json!(number),
                    Cell::Flag(yes) => json!(yes),
                };
                (column.name.to_owned(), value)
            });
            Value::Object(cells.collect::<Map<_, _>>())
        })
        .collect();
    json!({
        "name": table.name,
        "title": table.title,
        "notes": table.notes,
        "units": table.units(),
        "rows": rows,
    })
}

/// CSV with a header row; missing values are empty. [`csv`] and docs/formats.md
/// describe how control characters and formulas in names are escaped.
///
/// # Errors
/// When `out` cannot be written.
pub fn table_csv(table: &Table, dialect: CsvDialect, out: &mut dyn io::Write) -> io::Result<()> {
    let names: Vec<String> = table.columns.iter().map(|column| csv(column.name)).collect();
    write!(out, "{}{}", names.join(","), dialect.end())?;
    for row in 0..table.height() {
        let cells: Vec<String> = table
            .columns
            .iter()
            .map(|column| match column.values.get(row) {
                Cell::Missing => String::new(),
                Cell::Text(text) => csv(text),
                Cell::Whole(number) => number.to_string(),
                Cell::Real(number) => number.to_string(),
                Cell::Flag(yes) => yes.to_string(),
            })
            .collect();
        write!(out, "{}{}", cells.join(","), dialect.end())?;
    }
    Ok(())
}

/// A heading and a table in GitHub and GitLab Markdown, limited to `rows` rows.
pub fn table_markdown(table: &Table, rows: usize) -> String {
    let mut out = format!("### {}\n\n", markdown(&table.title));
    let titles: Vec<String> = table.columns.iter().map(|column| markdown(column.title)).collect();
    let rules = table.columns.iter().map(|column| match column.unit {
        Unit::Text | Unit::List => "---",
        _ => "---:",
    });
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(titles));
    out.push_str(&line(rules.map(str::to_owned).collect()));
    for row in table.shown(rows) {
        let cells = table.columns.iter().map(|column| markdown(&cell_text(column, row)));
        out.push_str(&line(cells.collect()));
    }
    if table.height() > rows {
        out.push_str(&format!("\n… {}\n", more_rows(table, rows)));
    }
    for note in &table.notes {
        out.push_str(&format!("\n{}\n", markdown_paragraph(note)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        Table::new("example", "An example")
            .note("Counted twice.")
            .text("command", "command", ["sed", "=cmd(\"x\"),\n\u{1b}[31m"])
            .whole("life_ns", "life", Unit::Nanoseconds, [Some(1_500_000), None])
            .real("share_percent", "share", Unit::Percent, [Some(12.5), Some(f64::NAN)])
    }

    #[test]
    fn text_has_units_and_no_control_characters() {
        let style = Style { width: 60, rows: 10, ..Style::default() };
        let text = table_text(&example(), style);
        assert!(text.contains("1.5 ms") && text.contains("12.5 %") && text.contains("Counted"));
        assert!(!text.contains('\u{1b}'));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let one = table_text(&example(), Style { rows: 1, ..style });
        assert!(one.contains("1 more"), "{one}");
    }

    #[test]
    fn a_share_of_few_readings_is_an_interval() {
        let table = Table::new("t", "T")
            .real("system_percent", "system", Unit::Percent, [Some(12.5), None, None])
            .real("system_low_percent", "from", Unit::Percent, [Some(9.0), Some(47.9), Some(5.0)])
            .detail()
            .real("system_high_percent", "to", Unit::Percent, [Some(15.0), Some(89.0), Some(95.0)])
            .detail();
        let text = table_text(&table, Style { rows: 1, ..Style::default() });
        assert!(text.contains("  12.5 %\n  … 2 more rows: "), "{text}");
        let text = table_text(&table.in_whole(), Style { rows: 1, ..Style::default() });
        let cells: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
        assert_eq!(cells, ["12.5 %", "48-89 %", "-"]);
    }

    #[test]
    fn a_pid_is_a_name_and_no_figure() {
        let pids = proctrace_findings::Values::Whole(vec![Some(12_345)]);
        let table = Table::new("t", "T").column("pid", "pid", Unit::Text, pids);
        let text = table_text(&table, Style::default());
        assert!(text.contains("  12345\n"), "{text}");
        assert_eq!(table_json(&table)["rows"][0]["pid"], 12_345);
    }

    #[test]
    fn csv_is_quoted_and_no_formula() {
        let mut out = Vec::new();
        table_csv(&example(), CsvDialect::Rfc4180, &mut out).unwrap();
        let csv = String::from_utf8(out).unwrap();
        let mut unix = Vec::new();
        table_csv(&example(), CsvDialect::Unix, &mut unix).unwrap();
        assert_eq!(String::from_utf8(unix).unwrap(), csv.replace('\r', ""));
        assert_eq!(
            csv,
            "command,life_ns,share_percent\r\nsed,1500000,12.5\r\n\"'=cmd(\"\"x\"\"),\\x0a\\x1b[31m\",,\r\n"
        );
    }

    #[test]
    fn markdown_keeps_names_in_their_cells() {
        let table = Table::new("t", "A | b").text("n", "n", ["a|b", "<img src=x>", "[x](y)"]);
        let text = table_markdown(&table, 2);
        assert!(text.contains("| a\\|b |") && text.contains("| &lt;img src=x&gt; |"), "{text}");
        assert!(text.contains("… 1 more row\n") && text.starts_with("### A \\| b"), "{text}");
    }

    #[test]
    fn json_has_rows_by_name_and_null_for_what_is_missing() {
        let json = table_json(&example());
        assert_eq!(json["rows"][0]["life_ns"], 1_500_000);
        assert_eq!(json["rows"][1]["life_ns"], Value::Null);
        assert_eq!(json["rows"][1]["share_percent"], Value::Null);
        assert_eq!(json["units"]["life_ns"], "nanoseconds");
    }

    #[test]
    fn numbers_have_about_three_digits() {
        assert_eq!(figure(0.0123, Unit::Percent), "0.012 %");
        assert_eq!(figure(123456.7, Unit::PerSecond), "123,457/s");
        assert_eq!(figure(-0.5, Unit::Coefficient), "-0.50");
        assert_eq!(figure(0.12345, Unit::Ratio), "0.123");
        assert_eq!(figure(12345.678, Unit::Ratio), "12,346");
        assert_eq!(figure(-2e9, Unit::Nanoseconds), "-2.00 s");
        assert_eq!(figure(-15.0, Unit::Count), "-15");
        assert_eq!(figure(1.5, Unit::Count), "1.5");
    }
}
