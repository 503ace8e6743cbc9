//! `large-fork`: processes with much memory that copy their page tables to start a command.

use std::collections::BTreeMap;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_findings::{Advice, Gain, bytes, counted, time};
use proctrace_overview::path::Doing;
use proctrace_recording::waits::of_task;
use proctrace_wire::Quantity;

use super::Found;
use super::counter::is_of_tool;
use super::evidence::{Evidence, less, more, most};
use super::names::first_word;

/// Minimum memory of a forker: with less, copying the page tables takes no longer than the exec.
const RSS_MIN_BYTES: u64 = 32 << 20;
/// Time that a child which shares the memory of its forker takes from birth to exec, at most. Measured: 0.05 ms to
/// 0.1 ms on an idle core, whatever the size of the forker.
const EXEC_NS: u64 = 200_000;
/// Maximum time to give back the copy of a MiB in pages of 4 KiB. Measured: 18 µs to 22 µs, between 50 MiB and
/// 1600 MiB; on a virtual machine, which other ones may double.
const FREE_MAX_NS_PER_MIB: u64 = 50_000;
/// A minor fault of the forker, to copy a page that it shares with the child. Measured: 0.9 µs.
const FAULT_NS: u64 = 1_000;
/// Minimum forks that are worth a change of a program.
const FORKS_MIN: usize = 5;
/// Commands that are named.
const NAMED: usize = 3;

/// Cost of the children of one command line.
#[derive(Debug, Default)]
struct Forks {
    children: Vec<u32>,
    parents: BTreeMap<u32, u64>,
    /// The children's time from birth to exec: what giving back the page tables takes.
    freeing_ns: u64,
    /// The part of it on the path.
    on_path_ns: u64,
    /// Time of these children on the path until their exec in which they ran.
    ran_ns: u64,
    /// Time of these children on the path until their exec in which they were ready.
    ready_ns: u64,
}

/// Per command line of a process with a peak RSS of 32 MiB or more: its children that did not share its memory
/// and executed a program.
///
/// With X, the sum of the children's times from birth to exec, without their times off the CPU and without 0.2 ms
/// each, and for each at most 50 µs for each MiB of its forker: CPU low X, as they give back the copied page
/// tables in it; middle 2 X, as copying them takes the forker as long (measured: 0.9 to 1.2 times as long);
/// high 2.5 X, and 1 µs for each minor fault of the forker beyond its peak RSS, at most one for each of its pages
/// and child. The forker's half is at most its CPU time. Wall: the same, for the part of X on the critical path;
/// middle and high with the waits for a CPU on it.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    if !recording.knows().all(&[Quantity::PeakRss]) {
        return Vec::new();
    }
    let mut large = Bits::default();
    let mut any = false;
    for (number, process) in evidence.processes() {
        if recording.peak_rss_bytes(process) >= RSS_MIN_BYTES
            && !evidence.children(number).is_empty()
        {
            large.insert(number as usize);
            any = true;
        }
    }
    if !any {
        return Vec::new();
    }
    let until_exec = until_exec(evidence, &large);
    let on_path = on_path(evidence, &until_exec);
    let mut groups: BTreeMap<u32, Forks> = BTreeMap::new();
    for (child, exec_ns) in &until_exec {
        let (Some(parent), Some(template)) =
            (evidence.process(*child).parent(), evidence.spawner(*child))
        else {
            continue;
        };
        // As lintian: who runs it does not change how it starts programs.
        if is_of_tool(recording.line_of(&recording.processes()[parent])) {
            continue;
        }
        let freeing_ns = freeing_ns(evidence, *child, parent, *exec_ns);
        if freeing_ns > 0 {
            let forks = groups.entry(template).or_default();
            forks.children.push(*child);
            *forks.parents.entry(parent as u32).or_default() += 1;
            forks.freeing_ns = forks.freeing_ns.saturating_add(freeing_ns);
            let (ran_ns, ready_ns) = on_path.get(child).copied().unwrap_or_default();
            forks.on_path_ns = forks.on_path_ns.saturating_add(ran_ns.min(freeing_ns));
            forks.ran_ns += ran_ns;
            forks.ready_ns += ready_ns;
        }
    }
    groups.retain(|_, forks| forks.children.len() >= FORKS_MIN);
    groups.into_iter().filter_map(|(line, forks)| advice(evidence, line, forks)).collect()
}

/// The children of large processes with a memory of their own that executed a program, and when they did so
/// first.
fn until_exec(evidence: &Evidence<'_>, large: &Bits) -> BTreeMap<u32, u64> {
    let recording = evidence.recording;
    let mut until_exec = BTreeMap::new();
    for run in recording.runs().iter().filter(|run| run.happened_here) {
        let process = evidence.process(run.process);
        // The peak is that of the parent's last program: what it was before, was another size.
        let is_of = |parent: &usize| {
            large.contains(*parent) && process.spawned_in() == recording.processes()[*parent].run()
        };
        let of_large = process.parent().as_ref().is_some_and(is_of);
        if of_large && !recording.shared_memory(run.process as usize) {
            // Runs are in order of time.
            until_exec.entry(run.process).or_insert(run.time_ns);
        }
    }
    until_exec
}

/// The time on the path of each child until then: in which it ran, and in which it was ready.
fn on_path(evidence: &Evidence<'_>, until_exec: &BTreeMap<u32, u64>) -> FastMap<u32, (u64, u64)> {
    let mut on_path: FastMap<u32, (u64, u64)> = FastMap::default();
    for part in evidence.path.iter().flat_map(|path| &path.parts) {
        let process = evidence.recording.tasks()[part.task as usize].process() as u32;
        if let Some(exec_ns) = until_exec.get(&process) {
            let both_ns = part.end_ns.min(*exec_ns).saturating_sub(part.begin_ns);
            let (ran_ns, ready_ns) = on_path.entry(process).or_default();
            match part.doing {
                Doing::Running => *ran_ns += both_ns,
                Doing::WaitingForCpu => *ready_ns += both_ns,
                Doing::Waiting(_) => {}
            }
        }
    }
    on_path
}

/// Time for which a child was busy before its exec, beyond that of one with shared memory; limited by the peak RSS of
/// its forker.
fn freeing_ns(evidence: &Evidence<'_>, child: u32, parent: usize, exec_ns: u64) -> u64 {
    let recording = evidence.recording;
    let process = evidence.process(child);
    let before_ns = exec_ns.saturating_sub(process.born_ns);
    let task = process.tasks().next().and_then(|task| u32::try_from(task).ok());
    let waits = task.map_or(&[][..], |task| of_task(recording.waits().unwrap_or_default(), task));
    let off_ns =
        waits.iter().take_while(|wait| wait.since_ns() < exec_ns).fold(0_u64, |sum, wait| {
            sum.saturating_add(wait.until_ns().min(exec_ns) - wait.since_ns())
        });
    let rss_bytes = recording.peak_rss_bytes(&recording.processes()[parent]);
    let most_ns = (rss_bytes >> 20).saturating_mul(FREE_MAX_NS_PER_MIB);
    before_ns.saturating_sub(off_ns).saturating_sub(EXEC_NS).min(most_ns)
}

/// Time that the forkers' minor faults beyond their peak memory take, at most one for each page and child: those that
/// copy what they write to while a child has it, too. In total, and on the path.
fn copying_ns(evidence: &Evidence<'_>, parents: &BTreeMap<u32, u64>) -> (u64, u64) {
    let (mut all_ns, mut on_path_ns) = (0_u64, 0_u64);
    for (parent, children) in parents {
        let process = evidence.process(*parent);
        let tasks = process.tasks().map(|task| evidence.recording.tasks()[task].used().minflt);
        let faults = tasks.fold(0_u64, u64::saturating_add);
        let pages = process.maxrss_pages();
        let copies = faults.saturating_sub(pages).min(pages.saturating_mul(*children));
        let ns = copies.saturating_mul(FAULT_NS).min(process.cpu.total_ns());
        let path_ns = evidence.path_ns(*parent);
        all_ns = all_ns.saturating_add(ns);
        on_path_ns = on_path_ns.saturating_add(ns.min(path_ns));
    }
    (all_ns, on_path_ns)
}

fn advice(evidence: &Evidence<'_>, line: u32, forks: Forks) -> Option<Found> {
    let sum = |of: &dyn Fn(u32) -> u64| {
        forks.parents.keys().fold(0_u64, |sum, parent| sum.saturating_add(of(*parent)))
    };
    let parents_cpu_ns = sum(&|parent| evidence.process(parent).cpu.total_ns());
    let parents_path_ns = sum(&|parent| evidence.path_ns(parent));
    let (copies_ns, copies_path_ns) = copying_ns(evidence, &forks.parents);
    let gain = |freeing_ns: u64, forkers_ns: u64, copies_ns: u64, stretch: (f64, f64)| {
        let times = |ns: u64, stretch: f64| (ns as f64 * stretch) as u64;
        let freed_ns = times(freeing_ns, stretch.0);
        let middle_ns = times(freeing_ns, stretch.1).min(forkers_ns);
        let high_ns =
            times((freeing_ns / 2).saturating_mul(3).saturating_add(copies_ns), stretch.1);
        let high_ns = freed_ns.saturating_add(high_ns.min(forkers_ns));
        Gain::new(less(freeing_ns), freed_ns.saturating_add(middle_ns), more(high_ns))
    };
    let cpu =
        gain(forks.freeing_ns, parents_cpu_ns, copies_ns, (1.0, 1.0)).at_most(evidence.cpu_ns);
    let wall = match evidence.path {
        Some(_) => {
            let (ran_ns, ready_ns) = (forks.ran_ns.max(1), forks.ready_ns);
            let children = ran_ns.saturating_add(ready_ns) as f64 / ran_ns as f64;
            let parents = forks.parents.keys().map(|parent| evidence.stretch(*parent));
            let stretch = (children, parents.fold(1.0, f64::max));
            gain(forks.on_path_ns, parents_path_ns, copies_path_ns, stretch)
        }
        // Whether anything waits for the children is not known.
        None => Gain { low: 0, middle: 0, high: cpu.high },
    };
    if !evidence.pays(wall.middle, cpu.middle) {
        return None;
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for child in &forks.children {
        *counts.entry(evidence.command(*child).unwrap_or("?")).or_default() += 1;
    }
    let counts = most(counts.into_iter().collect(), NAMED);
    let listed: Vec<String> =
        counts.iter().map(|(command, count)| format!("{count} × {command}")).collect();
    let rss_bytes = forks
        .parents
        .keys()
        .map(|parent| evidence.recording.peak_rss_bytes(evidence.process(*parent)));
    let line = evidence.template(line);
    let children = forks.children.len() as u64;
    let advice = Advice {
        kind: "large-fork",
        what: format!(
            "Start commands of `{line}` by posix_spawn(3) or vfork(2), or from a small process that \
             is started first"
        ),
        evidence: format!(
            "with a peak RSS of {} it forks {} that execute {}: {} each from birth to exec",
            bytes(rss_bytes.max().unwrap_or(0)),
            counted(children, "child", "children"),
            listed.join(", "),
            time(forks.freeing_ns / children.max(1)),
        ),
        processes: children,
        commands: vec![first_word(&line).to_owned()],
        wall_ns: wall.at_most(evidence.wall_ns),
        cpu_ns: cpu,
        method:
            "the children's time from birth to exec, less 0.2 ms each: to give back the copied \
                 page tables (low); as long again to copy them, as measured (middle); half as long \
                 more, and 1 µs for each minor fault of the forker beyond its peak RSS (high); wall: the \
                 part of that on the critical path, with the waits for a CPU (middle, high)"
                .into(),
        risk:
            "what the child does between fork and exec must be done by attributes of posix_spawn, \
               or by the command"
                .into(),
        check: "record again: children are born with CLONE_VM (`dump --kind fork`)".into(),
        ..Advice::default()
    };
    let mut processes = forks.children;
    processes.extend(forks.parents.keys());
    processes.sort_unstable();
    Some(Found::less(processes, advice))
}
