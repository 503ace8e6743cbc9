//! Tests that what a recording does not know never becomes a number: each quantity in turn is removed from a real
//! recording, and every remaining number must equal that of the whole recording.

use std::collections::{BTreeMap, HashMap};

use crate::common::{pieces, pieces_with_waits, recording_without};
use proctrace_analysis::{Analysis, Options, Recording, Section, analyse};
use proctrace_findings::{Cell, Knowledge as State, Table};
use proctrace_trace::{Header, Knowledge};
use proctrace_wire::Quantity;
use serde_json::Value;

/// Collects every number by its path; list elements are identified by their strings, not their
/// index.
fn numbers(value: &Value, path: &str, out: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(number) => {
            assert!(out.insert(path.to_owned(), number.as_f64().unwrap()).is_none(), "{path}");
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{path}.{name}"), out);
            }
        }
        Value::Array(items) => {
            let mut seen: HashMap<String, usize> = HashMap::new();
            for (at, item) in items.iter().enumerate() {
                let name = match item.as_object() {
                    Some(fields) => {
                        let words = fields.iter().filter(|(name, value)| {
                            value.is_string() && *name != "main_spawner" || *name == "pid"
                        });
                        let words: Vec<String> =
                            words.map(|(_, value)| value.to_string()).collect();
                        let nth = seen.entry(words.join(" ")).or_default();
                        *nth += 1;
                        format!("{}#{nth}", words.join(" "))
                    }
                    None => at.to_string(),
                };
                numbers(item, &format!("{path}[{name}]"), out);
            }
        }
        _ => {}
    }
}

/// The same for a table, with rows identified by their strings. Numbers in text form also occur as
/// numbers; where each row has its own unit, the name of the figure includes it.
fn numbers_of_table(table: &Table, out: &mut BTreeMap<String, f64>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for row in 0..table.height() {
        let cells = || table.columns.iter().map(|column| (column.name, column.values.get(row)));
        let text = |name: &str| match table.named(name)?.values.get(row) {
            Cell::Text(text) => Some(text),
            _ => None,
        };
        let words: Vec<String> = cells()
            .filter(|(name, cell)| matches!(cell, Cell::Text(_)) || *name == "pid")
            .filter(|(name, _)| *name != "value")
            .map(|(_, cell)| format!("{cell:?}"))
            .collect();
        let words = words.join(" ");
        let nth = seen.entry(words.clone()).or_default();
        *nth += 1;
        for (name, cell) in cells() {
            let number = match cell {
                Cell::Whole(number) => number as f64,
                Cell::Real(number) => number,
                _ => continue,
            };
            let name = if name == "number" { text("figure").unwrap_or(name) } else { name };
            out.insert(format!("{}[{words}#{nth}].{name}", table.name), number);
        }
    }
}

/// Every number reported about a recording, and the numbers of tables and charts.
fn figures(recording: &Recording) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    let findings = analyse(recording);
    let mut json = serde_json::to_value(&findings).unwrap();
    // Not properties of the recording: how many processes a gap affects, and where series begin.
    json["blind_spots"] = Value::Null;
    // Laws compare records with counts, however few there were.
    json["health"]["laws"] = Value::Null;
    json["correlations"]["known_from_bin"] = Value::Null;
    // What can be recognized depends on what is known, and with it the sum of all gains.
    if let Some(advice) = json["advice"].as_object_mut() {
        advice.remove("together");
    }
    numbers(&json, "findings", &mut out);
    for metric in Analysis::of(recording).metrics().metrics {
        out.insert(format!("metric {metric}"), metric.value);
    }
    for section in Section::ALL {
        for table in section.of(recording, &Options::default()).tables {
            // The counterparts of the findings' blind spots and laws; see above.
            if !["unseen", "laws"].contains(&table.name) {
                numbers_of_table(&table, &mut out);
            }
        }
    }
    out
}

/// Times of processes are rounded to nanoseconds before they are summed.
fn close(figure: &str, value: f64, expected: f64) -> bool {
    let rounding = if figure.ends_with("_ns") { 1_000.0 } else { 1e-6 };
    (value - expected).abs() <= (1e-9 * expected.abs()).max(rounding)
}

/// Returns whether a figure depends on names: without arguments a script has the name of its interpreter, so groups
/// differ.
fn depends_on_names(figure: &str) -> bool {
    let totals = ["findings.summary.", "findings.run.", "findings.health.", "metric total_"];
    !totals.iter().any(|total| figure.starts_with(total))
        || ["system", "user", "ticks", "maxrss_program", "commands", "framework"]
            .iter()
            .any(|part| figure.contains(part))
}

#[test]
fn what_is_taken_out_is_missed_and_nothing_else_changes() {
    let pieces = pieces_with_waits();
    let whole = figures(&recording_without(&pieces, None));
    assert!(whole.len() > 1_000, "{}", whole.len());
    let mut invented: Vec<String> = Vec::new();
    for quantity in Quantity::ALL {
        let recording = recording_without(&pieces, Some(quantity));
        let known = analyse(&recording).known;
        let state = known.iter().find(|known| known.quantity == quantity.name()).unwrap();
        assert_eq!(state.state, State::Absent, "{state:?}");
        let found = figures(&recording);
        for (figure, value) in &found {
            if quantity == Quantity::Argv && depends_on_names(figure) {
                continue;
            }
            // Without times there are no bins.
            if quantity == Quantity::Times && figure == "findings.correlations.n" {
                assert_eq!(*value, 0.0);
                continue;
            }
            let expected = whole.get(figure);
            let same = expected.is_some_and(|expected| close(figure, *value, *expected));
            if !same {
                let name = quantity.name();
                invented.push(format!("without {name}: {figure} is {value}, not {expected:?}"));
            }
        }
        // Quantities that this recording does not contain have no effect.
        let nothing_to_miss = [
            Quantity::Memory,
            Quantity::Environment,
            Quantity::Argv,
            Quantity::LookupsChdir,
            Quantity::OpenedFiles,
            Quantity::FileSizes,
        ];
        // Only `libs` needs these, which is no section.
        if [Quantity::LookupTimes, Quantity::Mounts, Quantity::Signals].contains(&quantity) {
            continue;
        }
        if !nothing_to_miss.contains(&quantity) {
            assert!(found.len() < whole.len(), "nothing needs {}", quantity.name());
        }
    }
    let shown = invented.len().min(80);
    assert!(invented.is_empty(), "{} of them: {:#?}", invented.len(), &invented[..shown]);
}

#[test]
fn old_traces_say_what_they_were_asked_for() {
    let pieces = pieces();
    let mut header = pieces.header.clone();
    assert!(header.knowledge.is_empty());
    assert_eq!(header.knows(Quantity::Cpu), Knowledge::Exact);
    assert_eq!(header.knows(Quantity::LookupsStat), Knowledge::Exact);
    assert!(matches!(header.knows(Quantity::Memory), Knowledge::Absent { .. }));
    assert!(matches!(header.knows(Quantity::Split), Knowledge::Estimate { .. }));
    header.misses.retain(|family| family != "stat");
    let reason = "left out by --misses".to_owned();
    assert_eq!(header.knows(Quantity::LookupsStat), Knowledge::Absent { reason });
    // A quantity of a later version is ignored.
    let reason = "?".to_owned();
    header.knowledge.insert("tachyons".into(), Knowledge::Absent { reason });
    let text = serde_json::to_string(&header).unwrap();
    assert_eq!(serde_json::from_str::<Header>(&text).unwrap(), header);
}

#[test]
fn every_table_and_chart_says_what_it_needs() {
    let recording = recording_without(&pieces_with_waits(), None);
    for section in Section::ALL {
        let content = section.of(&recording, &Options::default());
        for table in &content.tables {
            assert!(table.rows_need.is_some(), "{}", table.name);
        }
        for chart in &content.charts {
            assert!(chart.needs.is_some(), "{}", chart.name);
        }
    }
}
