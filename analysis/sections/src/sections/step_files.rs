//! Files between steps: who writes and who reads them, until when they are needed, and which dependency is missing.

use proctrace_findings::{Table, Unit, Values, counted};
use proctrace_overview::disk::{DiskSpace, Peak, disk_space, largest_sizes};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::step_early::too_early;
use proctrace_overview::step_files::{Level, StepFile, StepUse, step_files};
use proctrace_overview::step_needs::unused_needs;
use proctrace_overview::step_order::{Order, StepFlow, are_orders_declared, step_flows};
use proctrace_overview::steps::sums;
use proctrace_recording::Recording;
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

const ROWS: &[Quantity] = &[Quantity::Forks, Quantity::Execs, Quantity::OpenedFiles];

const SIZES: &[Quantity] = &[Quantity::FileSizes];

/// Names that are listed in one cell; of others only the number is given.
const NAMED: usize = 2;

/// Nor is it without these why a step failed.
const EARLY: &[Quantity] = &[
    Quantity::Forks,
    Quantity::Execs,
    Quantity::OpenedFiles,
    Quantity::LookupsOpen,
    Quantity::Times,
];

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let files = step_files(recording, Level::Innermost);
    let flows = step_flows(recording, &files);
    let mut tables = vec![passed_on(recording, &files), inputs(recording, &files)];
    if let Some(space) = disk_space(recording, &sums(recording), &files) {
        tables.insert(1, disk(recording, &space));
    }
    // Without a file that declares them, nothing can be missing.
    if are_orders_declared(recording) {
        tables.insert(0, missing(recording, &flows));
        tables.push(unused(recording, &files, &flows));
    }
    if let Some(table) = early(recording, &files) {
        tables.insert(0, table);
    }
    Content { tables, charts: Vec::new() }
}

/// Steps that failed because they did not wait; `None` if there are none.
fn early(recording: &Recording, files: &[StepFile<'_>]) -> Option<Table> {
    if !recording.knows().all(EARLY) {
        return None;
    }
    let (rows, others) = too_early(recording, &sums(recording), files);
    if rows.is_empty() {
        return None;
    }
    let of = || rows.iter();
    let table = Table::new("step_too_early", "Steps that failed because a file was not there yet")
        .rows_need(EARLY)
        .text("step", "failed", of().map(|of| name(recording, of.step)))
        .text("path", "without", of().map(|of| to_text(of.path)))
        .text("writer", "which is written by", of().map(|of| name(recording, of.writer)))
        .whole("later_ns", "later by", Unit::Nanoseconds, of().map(|of| of.written_ns - of.missed_ns))
        .note(
            "The last that each looked for before it failed, at once, was a file that another step, which ran beside it, wrote \
             later: it should have waited for that step.",
        );
    Some(match others {
        0 => table,
        others => table.note(format!("{others} more that failed are not looked at.")),
    })
}

fn name(recording: &Recording, step: u32) -> &str {
    &recording.steps().all[step as usize].named.name
}

fn names<'a>(recording: &Recording, uses: impl Iterator<Item = &'a StepUse>) -> String {
    let all: Vec<&str> = uses.map(|used| name(recording, used.step)).collect();
    let more = all.len().saturating_sub(NAMED);
    let mut named = all[..all.len() - more].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    named
}

/// Pairs of steps whose order should have been declared.
fn missing(recording: &Recording, flows: &[StepFlow<'_>]) -> Table {
    let of = || flows.iter().filter(|flow| flow.order == Order::Missing);
    let known = flows.iter().filter(|flow| flow.order != Order::Unknown).count();
    let pairs = |number: usize| counted(number as u64, "pair", "pairs");
    let line = |step: u32| {
        let run = &recording.runs()[recording.steps().all[step as usize].run as usize];
        Some(recording.line_of(&recording.processes()[run.process as usize]).to_owned())
    };
    let lines = |of: fn(&StepFlow<'_>) -> u32| {
        Values::Text(
            flows
                .iter()
                .filter(|flow| flow.order == Order::Missing)
                .map(|flow| line(of(flow)))
                .collect(),
        )
    };
    Table::new("step_missing_needs", "Steps that read what another one writes, without waiting for it")
        .rows_need(ROWS)
        .text("reader", "reads", of().map(|flow| name(recording, flow.reader)))
        .text("writer", "what is written by", of().map(|flow| name(recording, flow.writer)))
        .whole("files", "files", Unit::Count, of().map(|flow| flow.files))
        .text("example", "example", of().map(|flow| to_text(flow.example)))
        .column("reader_command", "command that reads", Unit::Text, lines(|flow| flow.reader))
        .detail()
        .column("writer_command", "command that writes", Unit::Text, lines(|flow| flow.writer))
        .detail()
        .note(
            "The file of --steps declares neither directly nor through others that the reader comes after the writer, so \
             that their order was chance. A cache that any of them fills is harmless.",
        )
        .note(match (flows.len(), known) {
            (0, _) => "No step reads what another one writes.".to_owned(),
            (all, 0) => format!("The file knows none of the {} of steps: is it of this job?", pairs(all)),
            (all, known) => format!("The file knows {known} of {} of steps.", pairs(all)),
        })
}

/// Files that one step reads after another one wrote them.
fn passed_on(recording: &Recording, files: &[StepFile<'_>]) -> Table {
    let mut rows: Vec<(&StepFile<'_>, &StepUse)> = files
        .iter()
        .filter(|file| file.is_passed_on())
        .filter_map(|file| Some((file, file.readers().max_by_key(|used| used.last_ns)?)))
        .collect();
    rows.sort_by_key(|(file, last)| (last.last_ns, file.path));
    let of = || rows.iter();
    let table = Table::new(
        "step_files",
        "Files that steps pass on, in the order in which they are no longer needed",
    )
    .rows_need(ROWS)
    .text("path", "file", of().map(|(file, _)| to_text(file.path)));
    let table = match recording.knows().all(SIZES) {
        true => {
            let sizes = largest_sizes(recording);
            let size = |file: &StepFile<'_>| sizes.get(file.path).copied();
            table.whole("size_bytes", "size", Unit::Bytes, of().map(|(file, _)| size(file)))
        }
        false => table,
    };
    table
        .text("writers", "written by", of().map(|(file, _)| names(recording, file.writers())))
        .text("readers", "read by", of().map(|(file, _)| names(recording, file.readers())))
        .text("last_reader", "last read by", of().map(|(_, last)| name(recording, last.step)))
        .whole(
            "last_ns",
            "at",
            Unit::Nanoseconds,
            of().map(|(_, last)| last.last_ns.saturating_sub(recording.first_ns())),
        )
        .note("Below the directory in which the command was launched. A file can be deleted when its last reader has ended.")
}

/// Disk space as it was, and as it could be.
fn disk(recording: &Recording, space: &DiskSpace) -> Table {
    let at =
        |peak: &Peak| (peak.bytes > 0).then(|| peak.time_ns.saturating_sub(recording.first_ns()));
    let mut rows = vec![("as it was", space.peak.bytes, at(&space.peak))];
    rows.extend(
        space.peak_if_deleted.map(|peak| {
            ("each file deleted when its last reader has ended", peak.bytes, at(&peak))
        }),
    );
    rows.push(("left at the end", space.left_bytes, None));
    let of = || rows.iter();
    let table =
        Table::new("step_disk", "Disk space of what the job wrote below its directory, at most")
            .rows_need(SIZES)
            .text("what", "what", of().map(|(what, ..)| *what))
            .whole("bytes", "size", Unit::Bytes, of().map(|(_, bytes, _)| *bytes))
            .whole("time_ns", "at", Unit::Nanoseconds, of().map(|(.., at)| *at))
            .note("A file counts with the size that it had when it was last closed, from then on.");
    match recording.opened().map_or(0, |opened| opened.sizes_unknown) {
        0 => table,
        unknown => table.note(format!(
            "{} not followed: the path leads through a link or is not known, nobody had opened the file, or there are too \
             many. Files of these may count longer, or not at all.",
            if unknown == 1 {
                "1 size, rename or removal was".to_owned()
            } else {
                format!("{unknown} sizes, renames and removals were")
            }
        )),
    }
}

/// Files below the directory of the job that steps read before anybody wrote them.
fn inputs(recording: &Recording, files: &[StepFile<'_>]) -> Table {
    let first = |times: &mut dyn Iterator<Item = u64>| times.min();
    let rows: Vec<&StepFile<'_>> = files
        .iter()
        .filter(|file| {
            let read = first(&mut file.uses.iter().filter_map(|used| used.read_ns));
            let by_steps = file.uses.iter().filter_map(|used| used.written_ns);
            let written = first(&mut by_steps.chain(file.written_outside_ns));
            read.is_some_and(|read| written.is_none_or(|written| read < written))
        })
        .collect();
    let of = || rows.iter();
    let table = Table::new("step_inputs", "Files below the job's directory that were there before")
        .rows_need(ROWS)
        .text("path", "file", of().map(|file| to_text(file.path)))
        .text("readers", "read by", of().map(|file| names(recording, file.readers())))
        .whole("steps", "steps", Unit::Count, of().map(|file| file.readers().count() as u64));
    match recording.opened().map_or(0, |opened| opened.moves_unknown) {
        0 => table,
        unknown => table.note(format!(
            "{} not followed: the path leads through a link or is not known, nobody had opened the file, or there are too \
             many. What has its name by that has no writer here.",
            if unknown == 1 { "1 rename was".to_owned() } else { format!("{unknown} renames were") }
        )),
    }
}

/// Declared needs of which nothing is read.
fn unused(recording: &Recording, files: &[StepFile<'_>], flows: &[StepFlow<'_>]) -> Table {
    let rows = unused_needs(recording, files, flows);
    let of = || rows.iter();
    Table::new("step_unused_needs", "Declared dependencies of which no file is read")
        .rows_need(ROWS)
        .text("step", "step", of().map(|(step, _)| *step))
        .text("need", "waits for", of().map(|(_, need)| *need))
        .note("A step may have other reasons to wait: a directory that is made, a service, or a file outside.")
}
