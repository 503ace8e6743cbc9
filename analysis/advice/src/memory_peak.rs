//! `memory-peak`: a peak of memory that two processes, or groups of them, make together, though neither waits for the
//! other.

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_findings::{Advice, Gain, bytes, time};
use proctrace_recording::process::MemoryReading;
use proctrace_recording::waits::Waker;
use proctrace_wire::{WaitFor, layout};

use super::Found;
use super::evidence::{Evidence, less, more};
use super::names::first_word;

/// Minimum part of the peak that a process or a group has: one in this many.
const PART_OF_PEAK: u64 = 20;
/// Maximum number of processes or groups, those with most memory at the peak, that are compared with each other.
const UNITS_MAX: usize = 6;
/// Minimum children of one process with the same command line that are a group: a pool of workers.
const POOL_MIN: usize = 3;

/// A process, or a pool of workers, with all descendants.
struct Unit {
    /// Those from which the others descend.
    roots: Vec<u32>,
    /// All of them.
    members: Bits,
    /// PSS at the peak.
    pss_bytes: u64,
    /// The peak RSS of each process at the peak, added up.
    rss_bytes: u64,
}

/// Pair of the processes with most memory at the largest reading that reduces the peak most if one of them begins when
/// the other has ended: neither descends from the other, and no recorded wait of one was ended by the other, except for
/// locks in the kernel.
///
/// Memory: with P, the PSS of all processes, and A and B, those of the two, in each reading: middle, the largest P
/// less the largest of all P - A and P - B; low, the same with what A and B have alone (USS); high, the smaller of
/// the sums of their processes' peak RSS.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let largest = evidence.passes().iter().max_by_key(|(pass, _)| pass.pss_bytes);
    let Some((pass, readings)) = largest else { return Vec::new() };
    let units = units(evidence, readings, pass.pss_bytes);
    let related = related(evidence, &units);
    let mut best: Option<(Gain, usize, usize)> = None;
    for (other, second) in units.iter().enumerate() {
        for (one, first) in units[..other].iter().enumerate() {
            if related.contains(&(one, other)) {
                continue;
            }
            let gain = apart(evidence, first, second, pass.pss_bytes);
            if best.is_none_or(|(best, ..)| gain.middle > best.middle) {
                best = Some((gain, one, other));
            }
        }
    }
    let best = best.filter(|(gain, ..)| evidence.pays_memory(gain.middle));
    best.and_then(|(gain, one, other)| {
        advice(evidence, gain, (&units[one], &units[other]), pass.pss_bytes)
    })
    .into_iter()
    .collect()
}

/// Units with most memory in a reading.
fn units(evidence: &Evidence<'_>, readings: &[&MemoryReading], peak_bytes: u64) -> Vec<Unit> {
    let pss_bytes = |reading: &&MemoryReading| reading.record.pss_bytes;
    let mut largest: Vec<&MemoryReading> = readings.to_vec();
    largest.sort_by_key(|reading| std::cmp::Reverse(pss_bytes(reading)));
    let mut units: Vec<Unit> = Vec::new();
    for reading in largest {
        let process = reading.process as u32;
        if units.iter().any(|unit| unit.members.contains(reading.process)) {
            continue;
        }
        let roots = pool_of(evidence, process, readings);
        let mut members = Bits::default();
        for member in evidence.with_descendants(&roots) {
            members.insert(member as usize);
        }
        // What started one of the others cannot be apart from it.
        if units.iter().any(|unit| members.contains(unit.roots[0] as usize)) {
            continue;
        }
        let (mut pss, mut rss_bytes) = (0_u64, 0_u64);
        for reading in readings.iter().filter(|reading| members.contains(reading.process)) {
            let peak_rss_bytes = evidence
                .recording
                .peak_rss_bytes(evidence.process(reading.process as u32))
                .max(reading.record.rss_bytes);
            pss = pss.saturating_add(pss_bytes(reading));
            rss_bytes = rss_bytes.saturating_add(peak_rss_bytes);
        }
        if pss >= peak_bytes / PART_OF_PEAK {
            units.push(Unit { roots, members, pss_bytes: pss, rss_bytes });
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.pss_bytes));
    units.truncate(UNITS_MAX);
    units
}

/// The process alone, or all children of its parent with the same command line if several of them are in the reading.
fn pool_of(evidence: &Evidence<'_>, process: u32, readings: &[&MemoryReading]) -> Vec<u32> {
    let line = |process: u32| evidence.recording.template_of(evidence.process(process));
    let Some(parent) = evidence.process(process).parent() else { return vec![process] };
    let same = |other: u32| {
        evidence.process(other).parent() == Some(parent) && line(other) == line(process)
    };
    let in_reading = readings.iter().filter(|reading| same(reading.process as u32)).count();
    if in_reading < POOL_MIN {
        return vec![process];
    }
    let children = evidence.children(parent as u32).iter().copied();
    children.filter(|child| same(*child)).collect()
}

/// Pairs of which one descends from the other, or waited for it.
fn related(evidence: &Evidence<'_>, units: &[Unit]) -> Vec<(usize, usize)> {
    let mut related = Vec::new();
    for (other, second) in units.iter().enumerate() {
        for (one, first) in units[..other].iter().enumerate() {
            let within = |unit: &Unit, roots: &[u32]| {
                roots.iter().any(|root| unit.members.contains(*root as usize))
            };
            if within(first, &second.roots) || within(second, &first.roots) {
                related.push((one, other));
            }
        }
    }
    let tasks = evidence.recording.tasks();
    let mut unit_of_task: FastMap<u32, usize> = FastMap::default();
    for (task, number) in tasks.iter().zip(0..) {
        if let Some(unit) = units.iter().position(|unit| unit.members.contains(task.process())) {
            unit_of_task.insert(number, unit);
        }
    }
    for wait in evidence.recording.waits().unwrap_or_default() {
        // The kernel's own locks (of a page of a program that both start, of a directory) say nothing about the data
        // that one has from the other.
        if matches!(wait.waits_for, WaitFor::Cpu | WaitFor::Disk) {
            continue;
        }
        let Waker::Task(waker) = wait.waker() else { continue };
        if let (Some(one), Some(other)) = (unit_of_task.get(&wait.task), unit_of_task.get(&waker))
            && one != other
        {
            let pair = (*one.min(other), *one.max(other));
            if !related.contains(&pair) {
                related.push(pair);
            }
        }
    }
    related
}

/// Reduction of the peak if two run one after the other.
fn apart(evidence: &Evidence<'_>, first: &Unit, second: &Unit, peak_bytes: u64) -> Gain {
    let reduced = |of: fn(&layout::Memory) -> u64| {
        let (mut without_first, mut without_second) = (0, 0);
        for (pass, readings) in evidence.passes() {
            let sum = |unit: &Unit| {
                let members =
                    readings.iter().filter(|reading| unit.members.contains(reading.process));
                members.fold(0_u64, |sum, reading| sum.saturating_add(of(&reading.record)))
            };
            without_first = pass.pss_bytes.saturating_sub(sum(first)).max(without_first);
            without_second = pass.pss_bytes.saturating_sub(sum(second)).max(without_second);
        }
        peak_bytes.saturating_sub(without_first.max(without_second))
    };
    let high_bytes = first.rss_bytes.min(second.rss_bytes);
    let (alone, middle) = (reduced(|memory| memory.uss_bytes), reduced(|memory| memory.pss_bytes));
    Gain::new(less(alone), middle, more(high_bytes.max(middle))).at_most(peak_bytes)
}

/// Time for which both were alive, within the wall time.
fn both_ns(evidence: &Evidence<'_>, first: &Unit, second: &Unit) -> u64 {
    let end_ns = evidence.recording.first_ns().saturating_add(evidence.wall_ns);
    let life = |unit: &Unit| {
        let born = unit.roots.iter().map(|root| evidence.process(*root).born_ns).min();
        let ended = unit.roots.iter().map(|root| evidence.ended_ns(*root)).max();
        (born.unwrap_or(0), ended.unwrap_or(0).min(end_ns))
    };
    let (one, other) = (life(first), life(second));
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

fn advice(
    evidence: &Evidence<'_>,
    gain: Gain,
    (first, second): (&Unit, &Unit),
    peak_bytes: u64,
) -> Option<Found> {
    let line = |unit: &Unit| {
        let root = evidence.process(*unit.roots.first()?);
        evidence.recording.template_of(root)
    };
    let (one, other) = (line(first)?, line(second)?);
    let (first_root, second_root) = (*first.roots.first()?, *second.roots.first()?);
    let number = |unit: &Unit| match unit.roots.len() {
        1 => String::new(),
        several => format!("{several} × "),
    };
    let both_ns = both_ns(evidence, first, second);
    let mut commands = vec![first_word(one).to_owned(), first_word(other).to_owned()];
    commands.dedup();
    let mut roots = [&first.roots[..], &second.roots[..]].concat();
    roots.sort_unstable();
    let processes = evidence.with_descendants(&roots);
    let advice = Advice {
        kind: "memory-peak",
        what: format!(
            "Run {}`{}` and {}`{}` one after the other, if memory is short",
            number(first),
            evidence.line(first_root),
            number(second),
            evidence.line(second_root)
        ),
        evidence: format!(
            "at the peak of {} they have {} and {}; neither started the other or is seen to wait for \
             it; they overlap for {}",
            bytes(peak_bytes),
            bytes(first.pss_bytes),
            bytes(second.pss_bytes),
            time(both_ns)
        ),
        processes: processes.len() as u64,
        commands,
        memory_bytes: Some(gain),
        method:
            "memory: the largest reading less the largest that is left without one or the other, \
                 by PSS (middle) and USS (low); the smaller of their peak RSS (high)"
                .into(),
        risk: format!(
            "it takes up to {} longer; one may need the other in a way that no wait shows",
            time(both_ns)
        ),
        check: "record again with `--memory`, and use `advise --against`".into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice).keyed(&format!("{one}, {other}")))
}
