//! The data of the interactive page: they are those of the recording, and what it does not know is missing.

use std::collections::BTreeMap;

use crate::common::{pieces, pieces_with_waits, trace_without};
use proctrace_analysis::{Analysis, Options, Recording, analyse, page};
use proctrace_findings::PageData;
use proctrace_wire::Quantity;

/// The page's data of a recording without a quantity, and the recording.
fn data(pieces: &crate::common::Pieces, quantity: Option<Quantity>) -> (PageData, Recording) {
    let (recording, trace) = trace_without(pieces, quantity);
    let data = page(&Analysis::of(&recording), trace.path(), &Options::default()).unwrap();
    (data, recording)
}

fn column(data: &PageData, table: &str, name: &str) -> Vec<Option<u64>> {
    let table = data.tables.iter().find(|one| one.name == table).unwrap();
    let values = table.named(name).unwrap().values();
    assert!(values.len() as u64 == table.rows || values.is_empty(), "{name}");
    values
}

fn sum(data: &PageData, name: &str) -> Option<u64> {
    Some(column(data, "processes", name).into_iter().flatten().sum())
}

#[test]
fn columns_add_up_to_the_summary() {
    let (data, recording) = data(&pieces(), None);
    let summary = analyse(&recording).summary;
    assert_eq!(data.tables[0].rows, summary.processes.unwrap());
    for (name, expected) in [
        ("cpu_ns", summary.cpu_ns),
        ("system_ns", summary.system_ns),
        ("voluntary_switches", summary.switches_voluntary),
        ("minor_faults", summary.faults_minor),
        ("read_bytes", summary.read_bytes),
        ("write_bytes", summary.write_bytes),
        ("run_delay_ns", summary.run_delay_ns),
        ("threads", summary.threads),
        ("execs", summary.execs),
        ("failed_lookups", summary.lookups_in_vain),
    ] {
        assert_eq!(sum(&data, name), expected, "{name}");
    }
    // The lists of failed look-ups are complete where no process has more than twenty directories.
    let (lists, counts) = (column(&data, "misses", "list"), column(&data, "misses", "count"));
    let mut of_list: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (list, count) in lists.iter().zip(&counts) {
        let (rows, sum) = of_list.entry(list.unwrap()).or_default();
        (*rows, *sum) = (*rows + 1, *sum + count.unwrap());
    }
    let mut complete = 0;
    let missed = column(&data, "processes", "failed_lookups");
    for (list, missed) in column(&data, "processes", "misses").iter().zip(&missed) {
        let Some(list) = list else { continue };
        let (rows, sum) = of_list[list];
        assert!(rows <= 20 && sum <= missed.unwrap());
        if rows < 20 {
            assert_eq!(Some(sum), *missed);
            complete += 1;
        }
    }
    assert!(complete > 0);
    assert_eq!(data.left_out, []);
}

#[test]
fn arguments_and_directories_are_those_of_the_trace() {
    let (data, recording) = data(&pieces(), None);
    let text = |number: u64| &data.strings[usize::try_from(number).unwrap()];
    let (owners, lines) = (column(&data, "execs", "process"), column(&data, "execs", "arguments"));
    assert!(owners.is_sorted());
    let first = owners.iter().position(|owner| *owner == Some(0)).unwrap();
    let arguments: Vec<&str> = text(lines[first].unwrap()).split('\0').collect();
    let command: Vec<&str> = recording.header().command.iter().map(String::as_str).collect();
    assert_eq!(arguments, command);
    let cwd = column(&data, "execs", "cwd");
    assert_eq!(*text(cwd[first].unwrap()), recording.header().cwd);
}

#[test]
fn the_path_covers_the_wall_time() {
    let (data, recording) = data(&pieces_with_waits(), None);
    let lengths = column(&data, "path", "length_ns");
    assert_eq!(lengths.iter().flatten().sum::<u64>(), recording.wall_ns());
    assert!(!column(&data, "waits", "count").is_empty());
}

#[test]
fn what_is_taken_out_is_missing_with_a_reason() {
    let whole = data(&pieces_with_waits(), None).0;
    for (quantity, table, columns) in [
        (Quantity::Cpu, "processes", &["cpu_ns", "system_ns", "children_waited_cpu_ns"][..]),
        (Quantity::Io, "processes", &["read_bytes", "write_call_bytes"]),
        (Quantity::Switches, "processes", &["voluntary_switches", "migrations"]),
        (Quantity::LookupsStat, "processes", &["failed_lookups"]),
        (Quantity::PeakRss, "processes", &["peak_rss_bytes"]),
        (Quantity::Argv, "execs", &["arguments"]),
        (Quantity::Waits, "waits", &["count", "waker"]),
    ] {
        let without = data(&pieces_with_waits(), Some(quantity)).0;
        for name in columns {
            assert!(!column(&whole, table, name).is_empty(), "{name}");
            let table = without.tables.iter().find(|one| one.name == table).unwrap();
            let column = table.named(name).unwrap();
            assert!(column.unknown.is_some() && column.bytes.is_empty(), "{quantity:?}: {name}");
        }
    }
    let without = data(&pieces_with_waits(), Some(Quantity::Cpu)).0;
    for title in ["CPU", "CPU by category"] {
        let strip = without.strips.iter().find(|one| one.strip.title == title).unwrap();
        assert!(strip.unknown.is_some() && strip.strip.series.is_empty(), "{title}");
    }
}
