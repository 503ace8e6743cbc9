//! `repeated-opens`: the same file looked for or opened again and again.

use std::collections::BTreeMap;

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::{directory, errno};
use proctrace_findings::{Advice, Gain, count, counted, time};
use proctrace_libsearch::Sought;
use proctrace_recording::misses::MissKind;
use proctrace_recording::opened::{FileUse, OpenedFiles};
use proctrace_wire::escape::to_text;
use proctrace_wire::{Family, Quantity};

use super::Found;
use super::evidence::{Evidence, less, more, most, with_work_beside};
use super::names::first_word;

/// Minimum opens of one file by one process to report.
const OPENS_MIN: u32 = 100;
/// Time that a failed open takes where fewer than [`TIMED_MIN`] were timed: low, middle and high. Measured: 0.8 µs to
/// 1.2 µs, and 0.4 µs for its record; on the same virtual machine on another day, twice as long.
const FAILED_NS: [f64; 3] = [800.0, 1_500.0, 3_000.0];
const TIMED_MIN: u64 = 10;
/// Ratio of an open with its close, and with a read of a page, to a failed open. Measured: 1.6 to 2.0 times and 2.2 to
/// 2.7 times as long.
const OPEN_AND_CLOSE: f64 = 1.8;
const OPEN_READ_AND_CLOSE: f64 = 2.7;
/// Files that are named.
const NAMED: usize = 3;
/// Directories whose files are made when they are read: they are read again because they change.
const MADE_WHEN_READ: [&[u8]; 3] = [b"/proc/", b"/sys/", b"/dev/"];

/// Failed look-ups: per directory, call and errno. Opens (`record --opens`): per command line.
///
/// Failed: with E, the failed look-ups of each path beyond one for each process that looks in that directory, and t, the
/// mean duration of the timed ones there: CPU, middle E t; low at the lower end of the 95 % interval; high at its upper
/// end and half more, at least 0.5 µs each, at most the CPU time of these processes. Opens: with E, the opens of each file by each process but the first, and t, the mean duration
/// of failed opens: low E t, middle 1.8 E t, with the close, high 2.7 E t, with a read; without timed ones t is between
/// 0.8 and 3 µs. Wall: the same, for the part of the
/// processes' lives on the critical path; middle and high times [`Evidence::stretch`].
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let mut found = failed(evidence);
    if evidence.recording.knows().all(&[Quantity::OpenedFiles]) {
        found.extend(opened(evidence));
    }
    found
}

/// Look-ups or opens on the path.
#[derive(Debug, Default)]
struct OnPath {
    /// Times the part of their process's life on the path.
    number: f64,
    /// Times what it waits for CPUs as well.
    stretched: f64,
}

impl OnPath {
    fn add(&mut self, evidence: &Evidence<'_>, process: u32, number: f64) {
        let on_path = number * evidence.part_on_path(process);
        self.number += on_path;
        self.stretched += on_path * evidence.stretch(process);
    }

    /// The gain of wall time, of that of so many of them in CPU time. Without a path, nothing is certain.
    fn gain(&self, evidence: &Evidence<'_>, cpu: Gain, all: f64) -> Gain {
        let part = |ns: u64, number: f64| (ns as f64 * number / all.max(1.0)) as u64;
        let gain = match evidence.path {
            Some(_) => Gain::new(
                part(cpu.low, self.number),
                part(cpu.middle, self.stretched),
                part(cpu.high, self.stretched),
            ),
            None => Gain { low: 0, middle: 0, high: cpu.high },
        };
        gain.at_most(evidence.wall_ns)
    }
}

/// A directory, by number, with errno and family.
type Key = (u32, u16, u8);

fn key(kind: &MissKind) -> Key {
    (kind.directory, kind.errno, kind.family)
}

/// Failed look-ups of one kind.
#[derive(Debug, Default)]
struct Again {
    number: u32,
    /// All of the kind.
    count: u64,
    on_path: OnPath,
    processes: Vec<u32>,
    /// Those that are repeated, by path.
    repeated: Vec<(String, u64)>,
}

fn failed(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    let (Some(misses), Some(_)) = (recording.misses(), recording.lookup_times()) else {
        return Vec::new();
    };
    // Most kinds cost too little: what each process has of them is not looked at.
    let mut groups: BTreeMap<Key, Again> = BTreeMap::new();
    let mut key_of: Vec<Option<Key>> = vec![None; misses.kinds().len()];
    for ((kind, count, _), number) in misses.totals().iter().zip(0..) {
        let again = Again { number, count: *count, ..Again::default() };
        if cost(evidence, &again, *count).is_some() {
            groups.insert(key(kind), again);
            key_of[number as usize] = Some(key(kind));
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    for (process, kind, count) in misses.counted() {
        let key = key_of.get(kind as usize).copied().flatten();
        if let Some(again) = key.and_then(|key| groups.get_mut(&key)) {
            again.on_path.add(evidence, process, f64::from(count));
            again.processes.push(process);
        }
    }
    let numbers = recording.directories().iter().map(Vec::as_slice).zip(0..);
    let numbers: FastMap<&[u8], u32> = numbers.collect();
    for missed in recording.missed_paths().into_iter().flat_map(|missed| &missed.paths) {
        let again = numbers
            .get(directory(&missed.path))
            .and_then(|number| groups.get_mut(&(*number, missed.errno, missed.family)))
            .filter(|_| missed.sought() != Sought::Library);
        if let Some(again) = again {
            let repeated = missed.count.saturating_sub(again.processes.len() as u64);
            if repeated > 0 {
                again.repeated.push((to_text(&missed.path).into_owned(), repeated));
            }
        }
    }
    groups.into_iter().filter_map(|(key, again)| failed_advice(evidence, key, again)).collect()
}

/// Time that so many of the look-ups of a kind take: low, middle, high; `None` if they do not pay.
fn cost(evidence: &Evidence<'_>, again: &Again, number: u64) -> Option<Gain> {
    let mut times = *evidence.recording.lookup_times()?.by_kind.get(&again.number)?;
    times.misses = again.count;
    let cost = times.cost()?;
    let part =
        |ns: u64| (u128::from(ns) * u128::from(number) / u128::from(again.count.max(1))) as u64;
    let high_ns = with_work_beside(number as f64, part(cost.high_ns));
    let gain = Gain::new(less(part(cost.low_ns)), part(cost.total_ns), more(high_ns));
    evidence.pays(gain.middle, gain.middle).then_some(gain)
}

fn failed_advice(evidence: &Evidence<'_>, (_, error, family): Key, again: Again) -> Option<Found> {
    let repeated: u64 = again.repeated.iter().map(|(_, number)| number).sum();
    let own_ns = evidence.cpu_ns_of(&again.processes);
    let cpu = cost(evidence, &again, repeated)?.at_most(more(own_ns));
    let paths = again.repeated.len() as u64;
    let call = Family::ALL.get(usize::from(family)).map_or("look-up", |family| family.name());
    let advice = Advice {
        kind: "repeated-opens",
        what: "Remember that a file is not there, instead of looking for it again".into(),
        evidence: format!(
            "{} of {}, {} each, beyond the first of each process, with {call} and {}, by {}: {}",
            counted(repeated, "failed look-up", "failed look-ups"),
            counted(paths, "path", "paths"),
            time(cpu.middle / repeated.max(1)),
            errno(error),
            counted(again.processes.len() as u64, "process", "processes"),
            listed(again.repeated),
        ),
        processes: again.processes.len() as u64,
        wall_ns: again.on_path.gain(evidence, cpu, again.count as f64),
        cpu_ns: cpu.at_most(evidence.cpu_ns),
        method: "the mean duration of the timed look-ups in that directory, times those of each \
                 path beyond one for each process, with the interval of the mean; high has half \
                 more, at least 0.5 µs each, for the caller's own work; wall: the part of the processes' lives on the \
                 critical path, with their waits for a CPU (middle, high)"
            .into(),
        risk: "the file may be made in the meantime".into(),
        check: "record again: `report --section lookups` has fewer of them".into(),
        ..Advice::default()
    };
    Some(Found::less(again.processes, advice))
}

fn listed(paths: Vec<(String, u64)>) -> String {
    let named = most(paths, NAMED).into_iter();
    let named: Vec<String> =
        named.map(|(path, number)| format!("{} × {path}", count(number))).collect();
    named.join(", ")
}

/// Files that processes of one command line open again.
#[derive(Debug, Default)]
struct Reopened {
    processes: Vec<u32>,
    opens: u64,
    on_path: OnPath,
    /// By file.
    files: BTreeMap<u32, u64>,
}

fn opened(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    let mut groups: BTreeMap<&str, Reopened> = BTreeMap::new();
    for (path, uses) in recording.opened().into_iter().flat_map(OpenedFiles::by_file) {
        if MADE_WHEN_READ.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for FileUse { file, process, opens, .. } in uses {
            if *opens < OPENS_MIN {
                continue;
            }
            let again = u64::from(*opens - 1);
            let line = recording.template_of(evidence.process(*process)).unwrap_or("");
            let reopened = groups.entry(line).or_default();
            reopened.processes.push(*process);
            reopened.opens += again;
            reopened.on_path.add(evidence, *process, again as f64);
            *reopened.files.entry(*file).or_default() += again;
        }
    }
    groups.into_iter().filter_map(|(line, it)| opened_advice(evidence, line, it)).collect()
}

fn opened_advice(evidence: &Evidence<'_>, line: &str, reopened: Reopened) -> Option<Found> {
    let recording = evidence.recording;
    let timed = recording.lookup_times().map(|times| &times.opens);
    let mean_ns =
        timed.filter(|opens| opens.timed() >= TIMED_MIN).and_then(|opens| opens.mean_ns());
    let [low_ns, middle_ns, high_ns] = mean_ns.map_or(FAILED_NS, |mean_ns| [mean_ns; 3]);
    let ns = |each_ns: f64, times: f64| (reopened.opens as f64 * each_ns * times) as u64;
    let cpu = Gain::new(
        less(ns(low_ns, 1.0)),
        ns(middle_ns, OPEN_AND_CLOSE),
        more(ns(high_ns, OPEN_READ_AND_CLOSE)),
    );
    let wall_ns = reopened.on_path.gain(evidence, cpu, reopened.opens as f64);
    if !evidence.pays(wall_ns.middle, cpu.middle) {
        return None;
    }
    let path = |file: u32| {
        let path = recording.opened().and_then(|opened| opened.paths.get(file as usize));
        path.map_or_else(String::new, |path| to_text(path).into_owned())
    };
    let number = reopened.files.len() as u64;
    let files = reopened.files.iter().map(|(file, opens)| (path(*file), *opens)).collect();
    let mut processes = reopened.processes;
    processes.sort_unstable();
    processes.dedup();
    let advice = Advice {
        kind: "repeated-opens",
        what: format!(
            "Keep files open or in memory in {}: it opens the same again",
            evidence.lines(&processes)
        ),
        evidence: format!(
            "{} of {} beyond the first of each process, by {}: {}",
            counted(reopened.opens, "open", "opens"),
            counted(number, "file", "files"),
            counted(processes.len() as u64, "process", "processes"),
            listed(files),
        ),
        processes: processes.len() as u64,
        commands: vec![first_word(line).to_owned()],
        wall_ns,
        cpu_ns: cpu.at_most(evidence.cpu_ns),
        method: format!(
            "opens of each file by each process beyond the first, times {} for a failed open ({}): \
             1 (low), 1.8 with the close (middle), 2.7 with a read (high), as measured; wall: the \
             part of the processes' lives on the critical path, with their waits for a CPU (middle, \
             high)",
            time(middle_ns as u64),
            if mean_ns.is_some() {
                "the mean of the timed ones"
            } else {
                "a guess: too few were timed"
            }
        ),
        risk: "the file may change in the meantime; open files are limited (`ulimit -n`)".into(),
        check: "record again with `--opens`: `report --section opens` has fewer of them".into(),
        ..Advice::default()
    };
    Some(Found::less(processes, advice).keyed(line))
}
