//! A whole report for a terminal: what fits one screen, then the tables.

use proctrace_findings::{Cell, Findings, Table};

use crate::data::table_text;
use crate::head::balanced;
use crate::screen::whole;
use crate::style::Style;

/// The summary and these tables, each with its essential notes; `--section` shows all notes.
pub fn full<'a>(
    findings: &Findings,
    tables: impl IntoIterator<Item = &'a Table>,
    style: Style,
) -> String {
    let mut out = whole(findings, style);
    if findings.health.is_good() {
        out.push('\n');
        for line in balanced(&findings.health, style) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    for table in tables {
        let parts = if table.name == BY_CLASS { by_class(table) } else { vec![table.clone()] };
        for mut table in parts {
            let mut others = 0;
            table.notes.retain(|note| {
                others += usize::from(!note.starts_with(NOT_KNOWN_NOTE));
                others <= 1
            });
            out.push('\n');
            out.push_str(&table_text(&table, style));
        }
    }
    out.push_str(
        "\nMore: --section NAME for other tables with all notes (--section list for the\n\
         names), --gantt OUT.svg for a chart, --html OUT.html, --json for scripts\n",
    );
    out
}

/// The table that is split by class.
const BY_CLASS: &str = "programs";
const CLASSES: [(&str, &str); 3] = [
    ("framework", "The experiment's software"),
    ("command", "System commands"),
    ("program", "Other programs"),
];
/// Prefix of the note that lists missing values and the reason.
const NOT_KNOWN_NOTE: &str = "Not known";

/// Splits a table of programs by class; the notes appear only below the last part.
fn by_class(table: &Table) -> Vec<Table> {
    let mut parts: Vec<Table> = CLASSES
        .into_iter()
        .map(|(class, title)| {
            let mut part = table.rows_where("class", class);
            // If no rule categorised any of these programs, the column would be constant.
            let rows = part.height();
            part.columns.retain(|column| {
                column.name != "category"
                    || (0..rows).any(|row| column.values.get(row) != Cell::Text("other"))
            });
            part.title = title.to_owned();
            part
        })
        .filter(|part| part.height() > 0)
        .collect();
    if let Some((_, others)) = parts.split_last_mut() {
        others.iter_mut().for_each(|part| part.notes.clear());
    }
    parts
}

#[cfg(test)]
mod tests;
