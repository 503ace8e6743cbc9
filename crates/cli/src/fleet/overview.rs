//! The overview of a fleet: the answers to all questions as one HTML page without scripts.

use std::path::Path;

use anyhow::Result;
use proctrace_findings::{Rows, RowsColumn, RowsValues};
use proctrace_fleet::{FLEET_QUERIES, Layout, ask};
use proctrace_report::escape::xml;
use proctrace_report::number::{bytes, count, time};

/// Rows of each answer.
const ROWS_MAX: usize = 30;

/// Head of the page: nothing is loaded, and nothing runs, whatever the names of programs are.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
    <title>proctrace: overview of a fleet</title>\n<style>\n\
    body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em }\n\
    div { overflow-x: auto } table { border-collapse: collapse }\n\
    th, td { padding: .2em .6em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }\n\
    td.number, th.number { text-align: right; white-space: nowrap }\n\
    </style>\n</head>\n<body>\n<h1>Overview of a fleet</h1>\n";

pub(super) fn page(directory: &Path, layout: &Layout) -> Result<String> {
    let mut out = HEAD.to_owned();
    for query in FLEET_QUERIES {
        let answer = ask(directory, layout, query.sql)?;
        let rows = answer.rows(0, ROWS_MAX)?;
        out.push_str(&format!(
            "<h2 id=\"{0}\">{0}</h2>\n<p>{1} {2} of {3} rows.</p>\n{4}",
            query.name,
            html(&query.says()),
            rows.height(),
            count(answer.height() as u64),
            table(&rows)
        ));
    }
    out.push_str("</body>\n</html>\n");
    Ok(out)
}

/// A text in HTML: without markup, and without characters that nobody sees.
fn html(text: &str) -> String {
    xml(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn table(rows: &Rows) -> String {
    let class = |column: &RowsColumn| match column.values {
        RowsValues::Signed(_) | RowsValues::Whole(_) | RowsValues::Real(_) => " class=\"number\"",
        _ => "",
    };
    let mut out = String::from("<div><table>\n<tr>");
    for column in &rows.columns {
        let name = html(&column.name);
        out.push_str(&format!("<th{}>{name}</th>", class(column)));
    }
    out.push_str("</tr>\n");
    for row in 0..rows.height() {
        out.push_str("<tr>");
        for column in &rows.columns {
            let cell = cell(column, row).unwrap_or_else(|| "-".to_owned());
            out.push_str(&format!("<td{}>{}</td>", class(column), html(&cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    out
}

/// A value with its unit; `None` if it is not known.
fn cell(column: &RowsColumn, row: usize) -> Option<String> {
    Some(match &column.values {
        RowsValues::Text(values) => values.get(row)?.clone()?,
        RowsValues::Signed(values) => {
            let value = (*values.get(row)?)?;
            let figure = value.unsigned_abs();
            let figure = match &*column.name {
                name if name.ends_with("_us") => time(figure.saturating_mul(1_000)),
                name if name.ends_with("_bytes") => bytes(figure),
                _ => count(figure),
            };
            if value < 0 { format!("-{figure}") } else { figure }
        }
        RowsValues::Whole(values) => count((*values.get(row)?)?),
        RowsValues::Real(values) => format!("{:.3}", (*values.get(row)?)?),
        RowsValues::Flag(values) => (*values.get(row)?)?.to_string(),
        RowsValues::Texts(values) => values.get(row)?.clone()?.join(" "),
    })
}
