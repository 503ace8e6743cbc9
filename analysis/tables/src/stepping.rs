//! The tables of steps and of their files.

use polars::prelude::*;
use proctrace_overview::disk::{disk_space_of, largest_sizes};
use proctrace_overview::step_files::{Level, step_files};
use proctrace_overview::steps::{group_of, sums};
use proctrace_recording::Recording;
use proctrace_recording::steps::NamedBy;
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

use crate::error::TableError;
use crate::frame::{Frame, Wanted, Words};
use crate::rows::{number, since};
use crate::schema::TableSchema;

/// All steps.
pub(crate) fn steps(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let rows = &recording.steps().all;
    let sums = sums(recording);
    let mut frame = Frame::new(schema, wanted, rows.len());
    let numbers = || (0..rows.len()).map(|at| Some(number(at))).collect::<Vec<_>>();
    let names = Words::new(rows.iter().map(|step| &step.named.name));
    let groups = Words::new(rows.iter().map(group_of));
    let ways = Words::new(NamedBy::ALL.map(NamedBy::name));
    let process = |run: u32| {
        let run = recording.runs().get(run as usize)?;
        recording.processes().get(run.process as usize).map(|process| process.serial)
    };
    frame.values("step_id", || (0..rows.len()).map(number).collect());
    frame.words("step", &names, numbers);
    frame.words("step_group", &groups, numbers);
    frame.options("part_of_id", || rows.iter().map(|step| step.parent).collect());
    frame.words("named_by", &ways, || {
        rows.iter()
            .map(|step| NamedBy::ALL.iter().position(|by| *by == step.named.by).map(number))
            .collect()
    });
    let coordinators: Vec<&str> =
        rows.iter().map(|step| &*step.named.coordinator).filter(|name| !name.is_empty()).collect();
    let coordinators = Words::new(coordinators);
    frame.words("coordinator", &coordinators, || {
        let mut next = 0..;
        rows.iter()
            .map(|step| (!step.named.coordinator.is_empty()).then(|| next.next()).flatten())
            .collect()
    });
    frame.options("process_id", || rows.iter().map(|step| process(step.run)).collect());
    frame.values("begin_ns", || sums.iter().map(|sum| since(recording, sum.begin_ns)).collect());
    frame.options("end_ns", || {
        sums.iter().map(|sum| sum.has_ended.then(|| since(recording, sum.end_ns))).collect()
    });
    frame.values("processes", || sums.iter().map(|sum| sum.processes).collect());
    frame.options("exit_code", || {
        sums.iter().map(|sum| sum.outcome.and_then(|outcome| outcome.code())).collect()
    });
    let disk = disk_space_of(recording, &sums);
    frame.options("written_peak_bytes", || {
        (0..rows.len()).map(|at| disk.as_ref().map(|disk| disk.by_step[at])).collect()
    });
    frame.finish()
}

/// Uses of files by steps.
pub(crate) fn files(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let files = step_files(recording, Level::Innermost);
    let rows = || files.iter().flat_map(|file| &file.uses);
    let mut frame = Frame::new(schema, wanted, rows().count());
    let paths = Words::new(files.iter().map(|file| to_text(file.path)));
    let first = |read: Option<u64>, written: Option<u64>| read.into_iter().chain(written).min();
    frame.values("step_id", || rows().map(|used| used.step).collect());
    frame.values("reads", || rows().map(|used| used.read_ns.is_some()).collect());
    frame.values("writes", || rows().map(|used| used.written_ns.is_some()).collect());
    frame.options("first_ns", || {
        rows()
            .map(|used| first(used.read_ns, used.written_ns).map(|at| since(recording, at)))
            .collect()
    });
    let sizes = recording.knows().all(&[Quantity::FileSizes]).then(|| largest_sizes(recording));
    frame.options("size_bytes", || {
        let of = |path: &[u8]| sizes.as_ref()?.get(path).copied();
        files.iter().flat_map(|file| file.uses.iter().map(|_| of(file.path))).collect()
    });
    frame.values("last_ns", || rows().map(|used| since(recording, used.last_ns)).collect());
    frame.words("path", &paths, || {
        let numbered = files.iter().enumerate();
        numbered.flat_map(|(at, file)| file.uses.iter().map(move |_| Some(number(at)))).collect()
    });
    frame.finish()
}
