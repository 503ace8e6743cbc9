//! Any names in every format: parsed back, they are inert text.
//!
//! A byte of 0xff, which never occurs in text, and the byte after it denote a known attack string.

use proctrace_findings::{
    Axis, Bars, Chart, ChartBody, Rows, RowsColumn, RowsValues, Series, Table, Unit,
};
use proctrace_fixtures::hostile;
use proctrace_report::{
    CsvDialect, Style, chart_svg, escape, rows_ndjson, table_csv, table_json, table_markdown,
    table_text,
};
use proctrace_wire::escape::{to_bytes, to_text};

pub(crate) fn run(data: &[u8]) {
    // Longer inputs add no coverage, and are slow to draw.
    let bytes = expanded(&data[..data.len().min(2000)]);
    let name = to_text(&bytes);
    let (what, name) = (format!("{name:?}"), &*name);
    let table = Table::new("fuzz", name)
        .text("name", "name", [name, "b"])
        .lists("names", "names", [format!("{name}, x"), name.to_owned()])
        .real("n", "n", Unit::Ratio, [Some(-1.5), None])
        .note(name);
    for width in [20, 80] {
        let style = Style { width, rows: usize::MAX, ..Style::default() };
        hostile::terminal(&what, &table_text(&table, style));
    }
    hostile::markdown(&what, &table_markdown(&table, usize::MAX), &[]);
    let mut csv = Vec::new();
    table_csv(&table, CsvDialect::Unix, &mut csv).expect("memory takes it");
    let rows = hostile::csv(&what, &String::from_utf8(csv).expect("it is text"));
    let cell = &rows[1][0];
    let same = |cell: &str| to_bytes(cell) == bytes;
    assert!(same(cell) || cell.strip_prefix('\'').is_some_and(same), "{cell:?} is not {what}");
    let json = serde_json::to_string_pretty(&table_json(&table)).expect("it is JSON");
    assert_eq!(hostile::json(&what, &escape::json(&json))["rows"][0]["name"], *name);
    let values = RowsValues::Texts(vec![Some(vec![name.to_owned(); 2]), None]);
    let rows = Rows { columns: vec![RowsColumn { name: name.to_owned(), values }] };
    let mut lines = Vec::new();
    rows_ndjson(&rows, &mut lines).expect("memory takes it");
    let lines = hostile::json_lines(&what, &String::from_utf8(lines).expect("it is text"));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0][name][1], *name);
    let chart = Chart::new(
        "fuzz",
        name,
        ChartBody::Bars(Bars {
            rows: vec![name.to_owned(); 2],
            axis: Axis::linear(name, Unit::Count),
            series: vec![Series { name: name.to_owned(), values: vec![Some(1.0), Some(2.0)] }],
            stacked: false,
        }),
    );
    hostile::svg(&what, &chart_svg(&chart));
}

fn expanded(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = data.iter();
    while let Some(byte) = rest.next() {
        match (byte, rest.as_slice().first()) {
            (0xff, Some(number)) => {
                rest.next();
                bytes.extend_from_slice(
                    hostile::ATTACKS[usize::from(*number) % hostile::ATTACKS.len()],
                );
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes
}
