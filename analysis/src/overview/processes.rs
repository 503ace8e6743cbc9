//! Individual processes: as frames together with their sums, and as rows of tables.

use std::ops::Range;

use polars::prelude::*;
use proctrace_findings::{Table, Unit, Values};

use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::recording::process::Process;

/// A frame whose columns have the names and units of the public table of processes, plus the group
/// number of each: grouping needs no strings.
///
/// `groups` are those of all processes, by index.
pub(crate) fn frame(
    recording: &Recording,
    range: Range<usize>,
    groups: &[u32],
) -> Result<DataFrame, AnalysisError> {
    let rows = &recording.processes[range.clone()];
    let numbers = |name: &str, of: &dyn Fn(&Process) -> u64| {
        Column::new(name.into(), rows.iter().map(of).collect::<Vec<u64>>())
    };
    let columns = vec![
        Column::new("group".into(), &groups[range.clone()]),
        numbers("threads", &|p| (p.tasks().len() as u64).saturating_sub(1)),
        numbers("user_ns", &|p| p.cpu.user_ns),
        numbers("system_ns", &|p| p.cpu.system_ns),
        numbers("user_ticks_ns", &|p| recording.ticks_of(p).user_ns),
        numbers("system_ticks_ns", &|p| recording.ticks_of(p).system_ns),
        numbers("peak_rss_bytes", &|p| recording.peak_rss_bytes(p)),
        Column::new("failed_lookups".into(), recording.misses.by_process(range)),
    ];
    Ok(DataFrame::new(rows.len(), columns)?)
}

/// Adds the pid, and the program with its role, of each process.
pub(crate) fn labels(table: Table, recording: &Recording, rows: &[usize]) -> Table {
    let of = || rows.iter().map(|at| &recording.processes[*at]);
    let program = |process: &Process| {
        let name = &recording.program_of(process).name;
        match recording.role_of(process) {
            Some(role) => format!("{name} {role}"),
            None => name.clone(),
        }
    };
    let pids = of().map(|process| u64::try_from(process.pid).ok()).collect();
    table.column("pid", "pid", Unit::Text, Values::Whole(pids)).text(
        "program",
        "program",
        of().map(program),
    )
}

/// Adds the CPU time of each process; split where it has enough ticks of its own.
pub(crate) fn cpu_columns(table: Table, recording: &Recording, rows: &[usize]) -> Table {
    let of = || rows.iter().map(|at| &recording.processes[*at]);
    let own = |process: &Process| recording.split.own(&recording.divided_of(process));
    table
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|process| process.cpu.total_ns()))
        .whole("user_ns", "user", Unit::Nanoseconds, of().map(|p| Some(own(p)?.user_ns)))
        .whole("system_ns", "system", Unit::Nanoseconds, of().map(|p| Some(own(p)?.system_ns)))
}
