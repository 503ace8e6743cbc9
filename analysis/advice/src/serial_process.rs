//! `serial-process`: one process computes alone, in a job that keeps several cores busy at other times.

use std::collections::BTreeMap;

use proctrace_findings::{Advice, Gain, count, counted, time};
use proctrace_overview::path::{Doing, Part};
use proctrace_wire::{Quantity, WaitFor};

use super::contention::coordinated;
use super::engines::{asks_for_threads, with_threads_otherwise};
use super::evidence::{Evidence, more};
use super::{Found, PART_CERTAIN};

/// Together, the stretches of a command line are at least this part of the wall time: one in this many.
const PART_OF_WALL: u64 = 10;
/// Samples within a stretch: of fewer, it is not known how many tasks ran.
const SAMPLES_MIN: usize = 3;
/// Samples in a row with several running tasks: fewer are a shell and the command that it starts.
const PARALLEL_MIN: usize = 3;
/// Minimum part of all samples that have several running tasks: one in this many.
const PART_PARALLEL: usize = 20;

/// Input of xz of which it can do several parts at once, at its highest level, too.
const XZ_MIN_BYTES: u64 = 400 << 20;

/// Time on the path in which one process computed, and no other.
struct Stretch {
    process: u32,
    begin_ns: u64,
    end_ns: u64,
    /// The part of it in which the process ran.
    running_ns: u64,
}

/// Per command line and role: the time on the critical path in which one of its processes computed, and on average
/// fewer than one other task of the job ran.
///
/// With S, that time, T, the part of it in which the process had a CPU, and k, the cores that the job keeps busy
/// at other times: high S - T/k, as if the work were spread evenly, or done while the other tasks run, and did not wait; middle
/// half of T - T/k; low a quarter of that if the program, or another one of its kind, divides its work when asked to,
/// otherwise 0, as what can be divided or moved is not recorded. Not more than is gained if the process takes no time at
/// all. CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    let cores = u64::from(recording.header().cpus).min(recording.peak_running().unwrap_or(0));
    if evidence.path.is_none()
        || cores < 2
        || !recording.knows().all(&[Quantity::Samples])
        || !runs_several_at_times(evidence)
    {
        return Vec::new();
    }
    let mut groups: BTreeMap<String, Vec<Stretch>> = BTreeMap::new();
    let coordinated = coordinated(evidence);
    for stretch in stretches(evidence) {
        let line = evidence.recording.line_of(evidence.process(stretch.process));
        // One option is for all of them.
        let key = asks_for_threads(line, cores)
            .map_or_else(|| evidence.called(stretch.process), |(name, _)| name);
        // What a coordinator starts is neither divided nor moved by who runs it, as rustc below cargo.
        let parent = recording.processes()[stretch.process as usize].parent();
        let is_moved = parent.is_none_or(|parent| !coordinated.contains(parent));
        if is_moved || asks_for_threads(line, cores).is_some() {
            groups.entry(key).or_default().push(stretch);
        }
    }
    let groups = groups.into_iter();
    groups.filter_map(|(called, stretches)| advice(evidence, &called, &stretches, cores)).collect()
}

/// Returns whether the job has work for several cores for a while: otherwise it is a serial job, and not one with a
/// serial part.
fn runs_several_at_times(evidence: &Evidence<'_>) -> bool {
    let ticks = evidence.recording.ticks().unwrap_or_default();
    let rows = ticks.chunk_by(|one, next| (one.running > 1) == (next.running > 1));
    let parallel = rows.filter(|row| row[0].running > 1 && row.len() >= PARALLEL_MIN);
    let samples: usize = parallel.map(<[_]>::len).sum();
    samples > 0 && samples * PART_PARALLEL >= ticks.len()
}

/// Parts of the path in a row that belong to one process, which computes in them while few others do.
fn stretches(evidence: &Evidence<'_>) -> Vec<Stretch> {
    let process = |part: &Part| evidence.recording.tasks()[part.task as usize].process() as u32;
    let computes = |part: &Part| {
        matches!(part.doing, Doing::Running | Doing::WaitingForCpu | Doing::Waiting(WaitFor::Disk))
    };
    let parts = evidence.path.as_ref().map_or(&[][..], |path| &path.parts);
    let rows = parts
        .chunk_by(|one, next| process(one) == process(next) && computes(one) && computes(next));
    let stretch = |row: &[Part]| {
        let (first, last) = (row.first()?, row.last()?);
        let running = row.iter().filter(|part| part.doing == Doing::Running);
        let stretch = Stretch {
            process: process(first),
            begin_ns: first.begin_ns,
            end_ns: last.end_ns,
            running_ns: running.map(|part| part.end_ns - part.begin_ns).sum(),
        };
        (computes(first) && is_alone(evidence, &stretch)).then_some(stretch)
    };
    rows.filter_map(stretch).collect()
}

/// Returns whether on average fewer than half a task ran beside it.
fn is_alone(evidence: &Evidence<'_>, stretch: &Stretch) -> bool {
    let ticks = evidence.recording.ticks().unwrap_or_default();
    let begin = ticks.partition_point(|tick| tick.head.time_ns < stretch.begin_ns);
    let end = ticks.partition_point(|tick| tick.head.time_ns <= stretch.end_ns).max(begin);
    let running: u64 = ticks[begin..end].iter().map(|tick| u64::from(tick.running)).sum();
    let samples = end - begin;
    samples >= SAMPLES_MIN && 2 * running < 3 * samples as u64
}

fn advice(
    evidence: &Evidence<'_>,
    called: &str,
    stretches: &[Stretch],
    cores: u64,
) -> Option<Found> {
    let length_ns: u64 = stretches.iter().map(|it| it.end_ns - it.begin_ns).sum();
    let running_ns: u64 = stretches.iter().map(|it| it.running_ns).sum();
    if length_ns < evidence.wall_ns / PART_OF_WALL {
        return None;
    }
    let mut processes: Vec<u32> = stretches.iter().map(|stretch| stretch.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let earlier_ns = evidence.earlier_without(&processes)?.ns;
    let middle_ns = ((running_ns - running_ns / cores) / 2).min(earlier_ns);
    if !evidence.pays(middle_ns, 0) {
        return None;
    }
    let line = evidence.recording.line_of(evidence.process(*processes.first()?));
    let asks = asks_for_threads(line, cores);
    // Its own option does it; of other programs it is not known whether the work can be divided.
    let otherwise = with_threads_otherwise(line, cores);
    // xz divides its input into blocks, and does nothing at once with less than two of them: 24 MiB each by default.
    let read_bytes = processes
        .iter()
        .map(|process| evidence.recording.used_by(evidence.process(*process)).rchar)
        .max();
    let is_small = asks.as_ref().is_some_and(|(name, _)| name == "xz")
        && read_bytes.is_none_or(|bytes| bytes < XZ_MIN_BYTES);
    let is_busy = evidence.percent_without_idle_core().is_some();
    let is_known = (asks.is_some() || otherwise.is_some()) && !is_small && !is_busy;
    let low_ns = if is_known { middle_ns / PART_CERTAIN } else { 0 };
    let what = match asks {
        Some((name, option)) => {
            format!("Let {name} use several cores: {name} {option}; it computes alone")
        }
        None => match otherwise {
            Some((name, does)) => {
                format!("Let {does} do the work of {name} on several cores: it computes alone")
            }
            None => format!(
                "Divide the work of {called}, or do it while the others run: it computes alone"
            ),
        },
    };
    let plugin = if line.contains("pytest") { "; -n of pytest needs pytest-xdist" } else { "" };
    let advice = Advice {
        kind: "serial-process",
        what,
        evidence: format!(
            "it computes alone for {} of the critical path, in {}, {:.0} % of the wall time; at \
             other times up to {} tasks want to run, on {}. {}",
            time(length_ns),
            counted(stretches.len() as u64, "stretch", "stretches"),
            100.0 * length_ns as f64 / evidence.wall_ns.max(1) as f64,
            count(evidence.recording.peak_running().unwrap_or(0)),
            counted(evidence.recording.header().cpus.into(), "core", "cores"),
            filling(evidence, stretches),
        ),
        processes: processes.len() as u64,
        commands: evidence.first_words(&processes),
        wall_ns: Gain::new(
            low_ns,
            middle_ns,
            more((length_ns - running_ns / cores).min(earlier_ns)),
        )
        .at_most(evidence.wall_ns),
        method: format!(
            "wall: these stretches less an even share for each of {cores} cores (high); half of \
             that for the time in which it ran (middle); {}",
            if low_ns > 0 {
                "low is a quarter of the middle"
            } else if is_busy {
                "low is 0, as others left no core idle: record when fewer of them run"
            } else {
                "low is 0, as what can be divided or moved is not recorded"
            }
        ),
        risk: format!(
            "it may need the results of all others, or all others its own; memory for all at once; \
             nothing is gained where other jobs use the idle cores{plugin}"
        ),
        check:
            "compare the results; then record again: more tasks run meanwhile (`report --section \
                concurrency`)"
                .into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice))
}

/// Work that could run at the same time, as far as it can be told: the process that is longest on the path after the
/// first stretch, or else before the last, and neither descends from the one that computes alone nor started it.
fn filling(evidence: &Evidence<'_>, stretches: &[Stretch]) -> String {
    const UNKNOWN: &str = "What could run meanwhile is not recorded.";
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
        return UNKNOWN.to_owned();
    };
    let longest = |from_ns: u64, to_ns: u64| {
        let mut on_path: BTreeMap<u32, u64> = BTreeMap::new();
        let parts = evidence.path.iter().flat_map(|path| &path.parts);
        for part in parts.filter(|part| part.doing == Doing::Running) {
            let both_ns = part.end_ns.min(to_ns).saturating_sub(part.begin_ns.max(from_ns));
            if both_ns > 0 {
                let process = evidence.recording.tasks()[part.task as usize].process() as u32;
                *on_path.entry(process).or_default() += both_ns;
            }
        }
        let related = |process: u32| {
            stretches.iter().any(|stretch| {
                evidence.descends_from(process, stretch.process)
                    || evidence.descends_from(stretch.process, process)
            })
        };
        let unrelated = on_path.into_iter().filter(|(process, _)| !related(*process));
        unrelated.max_by_key(|(_, ns)| *ns).filter(|(_, ns)| evidence.pays(*ns, 0))
    };
    let says = |when: &str, (process, ns): (u32, u64)| {
        format!(
            "{when} it, {} is on the path for {}; whether one needs the other is not recorded.",
            evidence.called(process),
            time(ns)
        )
    };
    longest(first.end_ns, u64::MAX)
        .map(|found| says("After", found))
        .or_else(|| longest(0, last.begin_ns).map(|found| says("Before", found)))
        .unwrap_or_else(|| UNKNOWN.to_owned())
}
