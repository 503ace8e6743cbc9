//! The data of an interactive page: every process with what it ran, used, missed and waited for.

mod details;
mod execs;
mod processes;
mod strings;
mod strips;

use std::path::Path;

use proctrace_findings::{LeftOut, PackedColumn, PageData, PageStep};
use proctrace_overview::options::Options;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_sections::Analysis;
use proctrace_wire::Quantity;

use self::execs::Execs;
use self::strings::Strings;
use crate::gantt::lanes::Lanes;

/// Most threads, execs, kinds of waits and failed look-ups in a page; it would be too large otherwise.
const THREADS_MAX: usize = 300_000;
const EXECS_MAX: usize = 600_000;
const WAITS_MAX: usize = 400_000;
const MISSES_MAX: usize = 400_000;
const SIGNALS_MAX: usize = 20_000;
/// Most steps: each has a row.
const STEPS_MAX: usize = 50_000;
/// Size of all environments, and most variables in them.
const ENVIRONMENTS_BYTES_MAX: usize = 32 << 20;
const VARIABLES_MAX: usize = 1_000_000;
/// Most failed look-ups by directory of one process.
const MISSES_OF_PROCESS_MAX: usize = 20;
/// Longest argument vector, and size of all strings.
const ARGUMENTS_BYTES_MAX: usize = 2_000;
const STRINGS_BYTES_MAX: usize = 48 << 20;

/// Everything that a page shows besides findings and sections. The trace at `path` is read again for
/// arguments, directories and environments.
///
/// # Errors
/// If the trace cannot be read.
pub fn page(
    analysis: &Analysis<'_>,
    path: &Path,
    options: &Options,
) -> Result<PageData, AnalysisError> {
    let recording = analysis.recording;
    let lanes = Lanes::of(recording, &vec![true; recording.processes().len()]);
    let mut strings = Strings::new(STRINGS_BYTES_MAX);
    let mut left_out = Vec::new();
    let execs = Execs::read(recording, path, &mut strings)?;
    let (misses, list_of) = details::misses(recording, &mut strings, &mut left_out);
    let mut tables = vec![
        processes::processes(recording, &list_of, &mut strings),
        processes::programs(recording, &lanes, &mut strings),
        processes::threads(recording, &mut left_out),
        details::path(analysis, &mut strings),
    ];
    let (runs, environments) = execs.tables(recording, &mut left_out);
    tables.extend([runs, environments, misses]);
    tables.push(details::waits(recording, &mut strings, &mut left_out));
    tables.push(details::signals(recording, &mut strings, &mut left_out));
    let (edges_ns, shown) = strips::strips(recording, &lanes, options.cores(recording));
    let steps = steps(recording, &mut left_out);
    left_out.extend(strings.left_out());
    Ok(PageData {
        length_ns: recording.recorded_ns().max(1),
        strings: strings.into_inner(),
        lanes: lanes.counted_processes(recording),
        tables,
        marks: marks(recording),
        steps,
        edges_ns,
        strips: shown,
        left_out,
    })
}

/// Moments that the payload named.
fn marks(recording: &Recording) -> Vec<(u64, String)> {
    let all = recording.marks().all.iter();
    all.map(|mark| (since(recording, mark.time_ns), mark.name.clone())).collect()
}

/// Steps, none if it is not known which process belongs to which.
fn steps(recording: &Recording, left_out: &mut Vec<LeftOut>) -> Vec<PageStep> {
    if !recording.knows().all(&[Quantity::Forks, Quantity::Execs]) {
        return Vec::new();
    }
    let process = |run: u32| recording.runs().get(run as usize).map_or(0, |run| run.process);
    let all = &recording.steps().all;
    if all.len() > STEPS_MAX {
        left_out.push(LeftOut { what: "steps", shown: wide(STEPS_MAX), of: wide(all.len()) });
    }
    let shown = all.iter().take(STEPS_MAX).map(|step| PageStep {
        name: step.named.name.clone(),
        process: process(step.run),
        parent: step.parent,
    });
    shown.collect()
}

/// A column of these values, or the reason why they are not known.
fn known<I: IntoIterator<Item = Option<u64>>>(
    recording: &Recording,
    needs: &[Quantity],
    name: &'static str,
    values: impl FnOnce() -> I,
) -> PackedColumn {
    match recording.knows().all(needs) {
        true => PackedColumn::of(name, values()),
        false => unknown(recording, needs, name),
    }
}

/// A column of which nothing is known, with the reason.
fn unknown(recording: &Recording, needs: &[Quantity], name: &'static str) -> PackedColumn {
    let why = recording.knows().why_not(needs).unwrap_or_else(|| "not recorded".to_owned());
    PackedColumn::unknown(name, why)
}

fn wide(index: usize) -> u64 {
    index as u64
}

/// Time since the start of the recording.
fn since(recording: &Recording, time_ns: u64) -> u64 {
    time_ns.saturating_sub(recording.first_ns())
}
