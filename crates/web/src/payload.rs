//! The data of a page in two parts: what the first picture needs, and the rest.

use std::io;

use proctrace_findings::{
    Chart, Column, Figure, PackedColumn, PackedTable, PageData, PageStrip, Table, Values,
};
use proctrace_report::chart_svg;
use proctrace_report::figures::category_colours;
use serde_json::{Value, json};

use crate::blob::Blob;
use crate::visible::visible;
use crate::{Page, PageSection};

/// Columns of the processes without which nothing can be drawn.
const FIRST: &[&str] = &["start_ns", "life_ns", "program", "parent", "pid", "step"];
/// Most rows of a table of a section.
const ROWS_MAX: usize = 500;
/// Findings that the page has in other forms.
const ELSEWHERE: &[&str] = &[
    "categories",
    "spawners",
    "lookups",
    "detached",
    "correlations",
    "memory",
    "advice",
    "phases",
];
/// Parts of its ends that the page has in other forms.
const ENDS_ELSEWHERE: &[&str] = &["by_program", "fatal_signals"];

/// Data that the first picture needs: findings without long tables, categories, lives and strips.
pub(crate) fn first(page: &Page<'_>) -> io::Result<Vec<u8>> {
    let mut findings = serde_json::to_value(page.findings)?;
    if let Some(all) = findings.as_object_mut() {
        all.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
        if let Some(Value::Object(ends)) = all.get_mut("ends") {
            ends.retain(|name, _| !ENDS_ELSEWHERE.contains(&name.as_str()));
        }
    }
    let data = page.data;
    let mut blob = Blob::default();
    let named = data.lanes.iter().filter(|lane| !lane.is_rest);
    let colours = category_colours(&named.map(|lane| &*lane.name).collect::<Vec<_>>());
    let lanes: Vec<Value> = data
        .lanes
        .iter()
        .enumerate()
        .map(|(at, lane)| {
            let colour = colours.get(at).filter(|_| !lane.is_rest);
            json!({"name": lane.name, "colour": colour, "rest": lane.is_rest,
                "processes": lane.processes, "threads": lane.threads})
        })
        .collect();
    let tables: Vec<Value> = data
        .tables
        .iter()
        .filter(|table| table.name == "processes")
        .map(|table| packed(table, &mut blob, |column| FIRST.contains(&column.name)))
        .collect();
    let header = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "findings": findings,
        "advised": page.advised,
        "length_ns": data.length_ns,
        "lanes": lanes,
        "marks": data.marks.iter().map(|(at, name)| json!([at, visible(name)])).collect::<Vec<_>>(),
        "steps": steps(data),
        "programs": programs(data),
        "figures": figures(),
        "tables": tables,
        "edges": blob.add(&floats(data.edges_ns.iter().map(|edge| *edge as f64))),
        "strips": data.strips.iter().map(|one| strip(one, &mut blob)).collect::<Vec<_>>(),
    });
    blob.deflated(header)
}

/// Name, words and unit of each figure of a process.
fn figures() -> Vec<Value> {
    let shown = Figure::ALL.into_iter().filter(|figure| !figure.is_raw());
    shown.map(|figure| json!([figure.name(), figure.label(), figure.unit().name()])).collect()
}

/// Name, first process and whole of each step.
fn steps(data: &PageData) -> Vec<Value> {
    let all = data.steps.iter();
    all.map(|step| json!([visible(&step.name), step.process, step.parent])).collect()
}

/// Name, category, class and lane of each program.
fn programs(data: &PageData) -> Vec<Value> {
    let Some(table) = data.tables.iter().find(|table| table.name == "programs") else {
        return Vec::new();
    };
    let values = |name| table.named(name).map(PackedColumn::values).unwrap_or_default();
    let text = |number: Option<u64>| {
        number.and_then(|number| data.strings.get(usize::try_from(number).ok()?))
    };
    let (names, categories) = (values("name"), values("category"));
    let (classes, lanes) = (values("class"), values("lane"));
    (0..names.len())
        .map(|at| json!([text(names[at]), text(categories[at]), text(classes[at]), lanes[at]]))
        .collect()
}

/// All else: the other tables, the strings and the sections.
pub(crate) fn rest(page: &Page<'_>) -> io::Result<Vec<u8>> {
    let data = page.data;
    let mut blob = Blob::default();
    let tables: Vec<Value> = data
        .tables
        .iter()
        .filter(|table| table.name != "programs")
        .map(|table| {
            let first = table.name == "processes";
            packed(table, &mut blob, |column| !(first && FIRST.contains(&column.name)))
        })
        .collect();
    let strings: Vec<String> = data.strings.iter().map(|text| line(text)).collect();
    let left_out: Vec<Value> = data
        .left_out
        .iter()
        .map(|left| json!({"what": left.what, "shown": left.shown, "of": left.of}))
        .collect();
    let sections: Vec<Value> = page.sections.iter().map(|one| section(one, &mut blob)).collect();
    let header = json!({
        "tables": tables,
        "strings": blob.add(strings.join("\n").as_bytes()),
        "left_out": left_out,
        "sections": sections,
    });
    blob.deflated(header)
}

/// A string without any control character except NUL between arguments.
fn line(text: &str) -> String {
    text.split('\0').map(visible).collect::<Vec<_>>().join("\0")
}

fn packed(table: &PackedTable, blob: &mut Blob, wanted: impl Fn(&PackedColumn) -> bool) -> Value {
    let columns: Vec<Value> = table
        .columns
        .iter()
        .filter(|column| wanted(column))
        .map(|column| {
            json!({"name": column.name, "ascending": column.ascending, "unknown": column.unknown,
                "blob": blob.add(&column.bytes)})
        })
        .collect();
    json!({"name": table.name, "rows": table.rows, "columns": columns})
}

/// Little-endian numbers of eight bytes.
fn floats(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

/// A strip: its values in four bytes each, NaN where they are not known.
fn strip(one: &PageStrip, blob: &mut Blob) -> Value {
    let strip = &one.strip;
    let series: Vec<Value> = strip
        .series
        .iter()
        .map(|series| {
            let values = series.values.iter();
            let bytes: Vec<u8> =
                values.flat_map(|v| v.map_or(f32::NAN, |v| v as f32).to_le_bytes()).collect();
            json!({"name": series.name, "blob": blob.add(&bytes)})
        })
        .collect();
    let limit = strip.limit.as_ref().map(|mark| json!({"at": mark.at, "name": mark.name}));
    json!({"title": strip.title, "unit": strip.unit.name(), "by_lane": strip.by_lane,
        "limit": limit, "unknown": one.unknown, "series": series})
}

fn section(section: &PageSection<'_>, blob: &mut Blob) -> Value {
    json!({
        "name": section.name,
        "help": section.help,
        "tables": section.tables.iter().map(table).collect::<Vec<_>>(),
        "charts": section.charts.iter().map(|one| chart(one, blob)).collect::<Vec<_>>(),
    })
}

/// A figure, whose names its writer has escaped.
fn chart(chart: &Chart, blob: &mut Blob) -> Value {
    let svg = blob.add(chart_svg(chart).as_bytes());
    json!({"name": chart.name, "title": chart.title, "notes": chart.notes, "svg": svg})
}

/// The rows of a table for which there is room.
fn table(table: &Table) -> Value {
    let rows = table.shown(ROWS_MAX);
    let column = |column: &Column| {
        json!({"name": column.name, "title": column.title, "unit": column.unit.name(),
            "values": only(&column.values, &rows)})
    };
    json!({"name": table.name, "title": table.title, "notes": table.notes, "of": table.height(),
        "columns": table.columns.iter().map(column).collect::<Vec<_>>()})
}

fn only(values: &Values, rows: &[usize]) -> Value {
    fn some<T: Clone + serde::Serialize>(values: &[Option<T>], rows: &[usize]) -> Value {
        json!(rows.iter().map(|row| values.get(*row).cloned().flatten()).collect::<Vec<_>>())
    }
    match values {
        Values::Text(values) => some(values, rows),
        Values::Whole(values) => some(values, rows),
        Values::Real(values) => some(values, rows),
        Values::Flag(values) => some(values, rows),
    }
}
