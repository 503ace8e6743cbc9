//! `search-in-vain`: failed look-ups of libraries at the starts of programs, which one directory of links avoids.

use std::collections::BTreeMap;

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::directory;
use proctrace_findings::{Advice, Gain, count, counted, time};
use proctrace_libsearch::Sought;
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

use super::Found;
use super::evidence::{Evidence, less, more, most, with_work_beside};

/// Failed look-ups of one start that stay with one directory of links: its sub-directories for CPU capabilities,
/// opened and then asked for, and /etc/ld.so.preload. glibc before 2.37; later ones make 7.
const STAY: u64 = 24;
/// Maximum number of things that are named.
const NAMED: usize = 3;

/// Failed look-ups of the dynamic linker at the starts of processes.
#[derive(Debug, Default)]
struct Searches {
    processes: Vec<u32>,
    programs: BTreeMap<String, u64>,
    /// All of them, and those beyond what stays.
    all: u64,
    avoidable: u64,
    /// Those that are avoidable, times the part of their process's life on the critical path.
    on_path: f64,
    /// The same for all of them, times what a process waits too shortly for a record.
    all_on_path: f64,
    /// The same and all of them, times what a process waits for CPUs as well.
    avoidable_stretched: f64,
    all_stretched: f64,
    /// The waits of these processes for a CPU on the critical path.
    ready_ns: u64,
}

/// The whole recording, as the list of directories is mostly the same for all.
///
/// With t, the mean duration of a failed open of a library, from the timed ones, N, the failed look-ups at starts,
/// and A, those beyond 24 for each start: CPU, middle A t; low A t at the lower end of the 95 % interval of t; high
/// N t at its upper end and half more, at least 0.5 µs each, for the linker's own work. Wall: the same, for the part of each
/// process's life on the critical path; middle and high times [`Evidence::stretch`]; high at least that of the CPU
/// time and all waits of these processes for a CPU, as shorter ones may not have to wait.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    if !recording.knows().all(&[Quantity::LookupsOpen, Quantity::LookupTimes]) {
        return Vec::new();
    }
    searches(evidence).and_then(|searches| advice(evidence, searches)).into_iter().collect()
}

fn searches(evidence: &Evidence<'_>) -> Option<Searches> {
    let recording = evidence.recording;
    let mut searches = Searches::default();
    let mut of_process: FastMap<u32, (u64, u64)> = FastMap::default();
    for (run, start) in recording.runs().iter().zip(recording.starts().unwrap_or_default()) {
        let loading = u64::from(start.loading);
        // A library that is nowhere, or optional, is looked for in the system's directories, whatever lists there are.
        let in_lists =
            start.libraries > 0 && 2 * u64::from(start.by_default) <= start.libraries.into();
        if run.happened_here && in_lists && loading > STAY {
            let (all, avoidable) = of_process.entry(run.process).or_default();
            *all += loading;
            *avoidable += loading - STAY;
            let name = recording.programs().get(run.program as usize).map(|program| &program.name);
            if let Some(name) = name {
                match searches.programs.get_mut(name) {
                    Some(sum) => *sum += loading,
                    None => drop(searches.programs.insert(name.clone(), loading)),
                }
            }
        }
    }
    for (process, (all, avoidable)) in of_process {
        let part = evidence.part_on_path(process);
        let stretched = part * evidence.stretch(process);
        searches.all += all;
        searches.avoidable += avoidable;
        searches.on_path += avoidable as f64 * part;
        searches.all_on_path += all as f64 * part * evidence.pace(process);
        searches.avoidable_stretched += avoidable as f64 * stretched;
        searches.all_stretched += all as f64 * stretched;
        searches.ready_ns = searches.ready_ns.saturating_add(evidence.ready_ns(process));
        searches.processes.push(process);
    }
    searches.processes.sort_unstable();
    (searches.avoidable > 0).then_some(searches)
}

fn advice(evidence: &Evidence<'_>, searches: Searches) -> Option<Found> {
    let mut times = evidence.recording.lookup_times()?.libraries;
    // All look-ups of the group; of these the timed ones are a sample.
    times.misses = searches.all;
    let cost = times.cost()?;
    let each = |sum_ns: u64| sum_ns as f64 / searches.all.max(1) as f64;
    let gain = |low: f64, middle: f64, high: f64| {
        let most_ns = (high * each(cost.high_ns)) as u64;
        Gain::new(
            less((low * each(cost.low_ns)) as u64),
            (middle * each(cost.total_ns)) as u64,
            more(with_work_beside(high, most_ns)),
        )
    };
    let (all, avoidable) = (searches.all as f64, searches.avoidable as f64);
    let cpu = gain(avoidable, avoidable, all).at_most(evidence.cpu_ns);
    let wall = match evidence.path {
        Some(_) => {
            let plain = gain(searches.on_path, searches.on_path, searches.all_on_path);
            let stretched = gain(0.0, searches.avoidable_stretched, searches.all_stretched);
            // A process that ends within its time slice does not wait for a CPU at all.
            let all_ready_ns = plain.high.saturating_add(searches.ready_ns);
            Gain::new(plain.low, stretched.middle, stretched.high.max(all_ready_ns))
        }
        // Whether anything waits for the starts is not known.
        None => Gain { low: 0, middle: 0, high: cpu.high },
    };
    if !evidence.pays(wall.middle, cpu.middle) {
        return None;
    }
    let listed = |counts: Vec<(String, u64)>| {
        let named = most(counts, NAMED).into_iter();
        let named: Vec<String> =
            named.map(|(name, number)| format!("{} × {name}", count(number))).collect();
        named.join(", ")
    };
    let (directories, number) = directories(evidence);
    let starts = searches.processes.len() as u64;
    let advice = Advice {
        kind: "search-in-vain",
        what:
            "Search fewer directories for libraries: shorten LD_LIBRARY_PATH, or replace it by one \
               directory of links (`proctrace libs` compares these)"
                .into(),
        evidence: format!(
            "{} of the dynamic linker in {}, {} each ({} of them timed), in {}: {}; by {}",
            counted(searches.all, "failed look-up", "failed look-ups"),
            counted(starts, "process", "processes"),
            time(each(cost.total_ns) as u64),
            count(cost.timed),
            counted(number, "directory", "directories"),
            listed(directories),
            listed(searches.programs.into_iter().collect()),
        ),
        processes: starts,
        wall_ns: wall.at_most(evidence.wall_ns),
        cpu_ns: cpu,
        method: format!(
            "the mean duration of the timed look-ups, times those beyond {STAY} for each start (low: \
             lower end of its interval), or all of them, at the upper end of the interval and half \
             more, at least 0.5 µs each, for the linker's own work (high); wall: of that, the part of each process's life \
             on the critical path, with its waits for a CPU (middle), or all of these (high)"
        ),
        risk: "another library of the same name may be found; links must follow upgrades".into(),
        check:
            "`proctrace libs` names the lists, and `proctrace libs try` records the job with and \
                without the change"
                .into(),
        ..Advice::default()
    };
    Some(Found::less(searches.processes, advice))
}

/// Directories in which libraries were looked for in vain, with the number of failed look-ups, and how many there
/// are.
fn directories(evidence: &Evidence<'_>) -> (Vec<(String, u64)>, u64) {
    let mut counts: BTreeMap<&[u8], u64> = BTreeMap::new();
    let missed = evidence.recording.missed_paths();
    for missed in missed.into_iter().flat_map(|missed| &missed.paths) {
        if missed.sought() == Sought::Library {
            *counts.entry(directory(&missed.path)).or_default() += missed.count;
        }
    }
    let number = counts.len() as u64;
    let escaped = counts.into_iter().map(|(path, count)| (to_text(path).into_owned(), count));
    (escaped.collect(), number)
}
