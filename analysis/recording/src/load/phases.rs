//! Phases between the marks of a payload. Recordings without marks are not read again for this.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::directory;
use proctrace_replay::{CpuTime, lookups, records};
use proctrace_trace::Reader;
use proctrace_wire::layout::{MISS_PATH_FAULT, MissFixed};
use proctrace_wire::{Record, Stream, mark_of_path};

use super::Loader;
use crate::marks::Phases;
use crate::misses::found_no_link;
use crate::split::{Balance, ENOUGH_TICKS, Ticks};
use crate::task::Task;

/// A task's counters at its last reading.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    time_ns: u64,
    run_ns: u64,
    ticks: Ticks,
}

/// Usage of a task in a phase.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    run_ns: u64,
    ticks: Ticks,
}

impl Loader<'_> {
    /// Divides the recording by its marks. Comes last, because CPU time is divided into user and
    /// system time by process.
    pub(super) fn read_phases(&mut self, reader: &mut Reader<BufReader<File>>) {
        self.made.marks.finish();
        let mut phases = Phases::of(&self.made);
        if !phases.is_empty() {
            self.count_births_and_ends(&mut phases);
            self.divide_cpu(reader, &mut phases);
            self.count_lookups(reader, &mut phases);
        }
        self.made.phases = phases;
    }

    fn count_births_and_ends(&self, phases: &mut Phases) {
        let made = &self.made;
        for process in &made.processes {
            if !process.was_there() {
                let phase = phases.of_birth(process.born_ns);
                phases.sums[phase].processes += 1;
                phases.programs.entry(key(phase, process.program())).or_default().processes += 1;
            }
            if let Some(ended_ns) = process.ended_ns() {
                let phase = phases.at(ended_ns);
                phases.sums[phase].ended += 1;
            }
        }
        let was_there = |task: &Task| made.processes[task.process()].was_there() && !task.forked;
        for task in made.tasks.iter().filter(|task| task.is_thread && !was_there(task)) {
            let phase = phases.of_birth(task.born_ns);
            phases.sums[phase].threads += 1;
        }
        for run in made.runs.iter().filter(|run| run.happened_here) {
            let phase = phases.at(run.time_ns);
            phases.sums[phase].execs += 1;
        }
    }

    /// Divides the CPU time of tasks among phases: what a task used between two readings is spread evenly over the time
    /// between them; so what ran within one phase is counted there exactly.
    fn divide_cpu(&self, reader: &mut Reader<BufReader<File>>, phases: &mut Phases) {
        let made = &self.made;
        let born = |task: usize| {
            let task = &made.tasks[task];
            let before = task.before().copied().unwrap_or_default();
            Reading { time_ns: task.born_ns, run_ns: before.run_ns, ticks: before.ticks() }
        };
        let mut last: FastMap<usize, Reading> = FastMap::default();
        let mut used: FastMap<(usize, usize), Used> = FastMap::default();
        reader.rewind();
        records(reader, Stream::Samples, |record| {
            if let Record::Sample(sample) = record
                && let Some(task) = self.task_of_serial.get(sample.head.task)
            {
                let last = last.entry(task).or_insert_with(|| born(task));
                let ticks = Ticks { user_ns: sample.utime_ns, system_ns: sample.stime_ns };
                let now = Reading { time_ns: sample.head.time_ns, run_ns: sample.run_ns, ticks };
                spread(phases, last, &now, |phase, more| add(&mut used, (task, phase), more));
                last.run_ns = last.run_ns.max(now.run_ns);
                (last.time_ns, last.ticks) = (now.time_ns, now.ticks);
            }
        });
        let mut parts = Parts::default();
        for at in 0..made.tasks.len() {
            let Some(end) = made.tasks[at].end() else { continue };
            let record = &end.record;
            let ticks = record.used.ticks();
            let now = Reading { time_ns: end.time_ns, run_ns: record.used.run_ns, ticks };
            match last.get(&at) {
                Some(last) => {
                    spread(phases, last, &now, |phase, more| add(&mut used, (at, phase), more));
                }
                None => {
                    let process = made.tasks[at].process();
                    let each = |phase, more| parts.push((process, phase, more));
                    spread(phases, &born(at), &now, each);
                }
            }
        }
        // In a fixed order, because sums of floating-point numbers depend on it.
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_unstable_by_key(|(key, _)| *key);
        let sampled = used.into_iter();
        parts.extend(sampled.map(|((at, phase), used)| (made.tasks[at].process(), phase, used)));
        self.add_parts(phases, &parts);
    }

    /// Adds up CPU time by phase, split like that of the process, or by the ticks of the part if
    /// there are enough.
    fn add_parts(&self, phases: &mut Phases, parts: &[(usize, usize, Used)]) {
        let made = &self.made;
        for (process, phase, used) in parts {
            let process = &made.processes[*process];
            let cpu = process.cpu;
            let share = if made.split.count(used.ticks) >= ENOUGH_TICKS {
                used.ticks.system_ns as f64 / used.ticks.total_ns().max(1) as f64
            } else {
                cpu.system_ns as f64 / cpu.total_ns().max(1) as f64
            };
            let system_ns = used.run_ns as f64 * share;
            let user_ns = used.run_ns as f64 - system_ns;
            let sums = &mut phases.sums[*phase];
            sums.cpu_ns = sums.cpu_ns.saturating_add(used.run_ns);
            (sums.user_ns, sums.system_ns) = (sums.user_ns + user_ns, sums.system_ns + system_ns);
            let sums = phases.programs.entry(key(*phase, process.program())).or_default();
            sums.cpu_ns = sums.cpu_ns.saturating_add(used.run_ns);
            (sums.user_ns, sums.system_ns) = (sums.user_ns + user_ns, sums.system_ns + system_ns);
        }
        let (user, system) = phases.sums.iter().fold((0.0, 0.0), |(user, system), sums| {
            (user + sums.user_ns, system + sums.system_ns)
        });
        let whole: CpuTime = made.processes.iter().map(|process| process.cpu).sum();
        let balance = Balance::towards(user, system, whole.system_ns as f64);
        for sums in &mut phases.sums {
            (sums.user_ns, sums.system_ns) = balance.of(sums.user_ns, sums.system_ns);
        }
        for sums in phases.programs.values_mut() {
            (sums.user_ns, sums.system_ns) = balance.of(sums.user_ns, sums.system_ns);
        }
    }

    fn count_lookups(&self, reader: &mut Reader<BufReader<File>>, phases: &mut Phases) {
        let made = &self.made;
        let directories = made.directories.iter().enumerate();
        let numbers: FastMap<&[u8], u32> = directories
            .map(|(at, directory)| (&directory[..], u32::try_from(at).unwrap_or(u32::MAX)))
            .collect();
        reader.rewind();
        lookups(
            reader,
            |miss, path| directory_of(miss, path).map(|name| numbers.get(name).copied()),
            |lookup| {
                let Some(directory) = lookup.made else { return };
                let phase = phases.at(lookup.miss.head.time_ns);
                phases.sums[phase].lookups_failed += 1;
                let directory = directory.unwrap_or(u32::MAX);
                *phases.directories.entry((number(phase), directory)).or_default() += 1;
                if let Some(task) = self.task_of_serial.get(lookup.miss.head.task) {
                    let process = &made.processes[made.tasks[task].process()];
                    let key = key(phase, process.program());
                    phases.programs.entry(key).or_default().lookups_failed += 1;
                }
            },
        );
    }
}

/// CPU time by process and phase.
type Parts = Vec<(usize, usize, Used)>;

fn number(phase: usize) -> u32 {
    u32::try_from(phase).unwrap_or(u32::MAX)
}

fn key(phase: usize, program: usize) -> (u32, u32) {
    (number(phase), u32::try_from(program).unwrap_or(u32::MAX))
}

fn add(used: &mut FastMap<(usize, usize), Used>, key: (usize, usize), more: Used) {
    let sum = used.entry(key).or_default();
    sum.run_ns = sum.run_ns.saturating_add(more.run_ns);
    sum.ticks = sum.ticks.plus(more.ticks);
}

/// Passes on what was used between two readings, by phase.
fn spread(phases: &Phases, from: &Reading, to: &Reading, mut each: impl FnMut(usize, Used)) {
    let times = (from.time_ns, to.time_ns);
    let (run_ns, ticks) = (to.run_ns.saturating_sub(from.run_ns), to.ticks.minus(from.ticks));
    if run_ns == 0 && ticks == Ticks::default() {
        return;
    }
    // Nearly always there is one phase.
    if phases.at(from.time_ns) == phases.at(to.time_ns.max(from.time_ns)) {
        return each(phases.at(from.time_ns), Used { run_ns, ticks });
    }
    phases.spread(times, run_ns, |phase, run_ns| {
        each(phase, Used { run_ns, ticks: Ticks::default() });
    });
    phases.spread(times, ticks.user_ns, |phase, user_ns| {
        each(phase, Used { run_ns: 0, ticks: Ticks { user_ns, system_ns: 0 } });
    });
    phases.spread(times, ticks.system_ns, |phase, system_ns| {
        each(phase, Used { run_ns: 0, ticks: Ticks { user_ns: 0, system_ns } });
    });
}

/// The directory of a look-up that counts as failed.
fn directory_of<'a>(miss: &MissFixed, path: &'a [u8]) -> Option<&'a [u8]> {
    let unread = miss.bits & MISS_PATH_FAULT != 0;
    if found_no_link(miss) || (!unread && mark_of_path(path).is_some()) {
        return None;
    }
    Some(if unread { b"?" } else { directory(path) })
}
