//! The processes that were alive at a time, or during an interval.

use std::cmp::Reverse;
use std::path::Path;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_classify::names::text;
use proctrace_findings::{Alive, AliveProcess};
use proctrace_overview::details::calls::each_call;
use proctrace_overview::details::since;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::process::Process;
use proctrace_replay::Body;
use proctrace_wire::Quantity;

use super::cpu_at::{CpuAt, Samples};
use super::state_at::{State, state};
use super::{clock_time, is_alive};

/// Selection and order of the processes that are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AliveView {
    /// A time, or the beginning of an interval, since the start of the recording.
    pub from_ns: u64,
    /// The end of the interval.
    pub to_ns: Option<u64>,
    /// The order.
    pub sort: AliveSort,
}

/// An order of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AliveSort {
    /// Most CPU time first.
    #[default]
    Cpu,
    /// The oldest first.
    Age,
    /// Largest RSS first.
    Rss,
    /// By pid.
    Pid,
}

/// The processes that were alive at a time, or at any time of an interval. The trace at `path` is read again
/// for samples and arguments.
///
/// # Errors
/// If the time is after the end of the recording, or if the trace cannot be read.
pub fn alive(recording: &Recording, path: &Path, view: &AliveView) -> Result<Alive, AnalysisError> {
    let from_ns = clock_time(recording, view.from_ns)?;
    let to_ns = view.to_ns.map(|to_ns| clock_time(recording, to_ns)).transpose()?;
    let all: Vec<usize> = (0..recording.processes().len())
        .filter(|at| {
            let process = &recording.processes()[*at];
            let began = process.born_ns <= to_ns.unwrap_or(from_ns);
            began && process.ended_ns().is_none_or(|ended_ns| ended_ns > from_ns)
        })
        .collect();
    let mut wanted = Bits::default();
    all.iter().for_each(|at| wanted.insert(*at));
    let times_ns = [from_ns, to_ns.unwrap_or(from_ns)];
    let then = Then {
        recording,
        from_ns,
        to_ns,
        samples: Samples::read(recording, path, times_ns, &wanted)?,
        runs: runs(recording, &all, &wanted, times_ns[1]),
        readings: readings(recording, times_ns[1]),
    };
    let arguments = then.arguments(path)?;
    let mut processes: Vec<AliveProcess> =
        all.iter().map(|at| then.process(*at, &arguments)).collect();
    match view.sort {
        AliveSort::Cpu => processes.sort_by_key(|p| (Reverse(p.cpu_ns), p.born_ns)),
        AliveSort::Age => processes.sort_by_key(|p| p.born_ns),
        AliveSort::Rss => processes.sort_by_key(|p| (Reverse(p.rss_bytes), p.born_ns)),
        AliveSort::Pid => processes.sort_by_key(|p| (p.pid, p.born_ns)),
    }
    let knows_waits = recording.knows().all(&[Quantity::Waits]);
    Ok(Alive {
        from_ns: view.from_ns,
        to_ns: view.to_ns,
        processes,
        waits_min_ns: recording.header().waits_min_ns.filter(|_| knows_waits),
        interval_ns: recording.header().interval_ns,
        not_known: recording.knows().why_not(&[
            Quantity::Forks,
            Quantity::Execs,
            Quantity::Argv,
            Quantity::Cpu,
            Quantity::Samples,
        ]),
    })
}

/// The run that each process was in by some time: its own, or its forker's at the fork.
fn runs(recording: &Recording, all: &[usize], wanted: &Bits, time_ns: u64) -> FastMap<usize, u32> {
    let forkers = all.iter().filter_map(|at| Some((*at, recording.processes()[*at].spawned_in()?)));
    let mut runs: FastMap<usize, u32> = forkers.collect();
    for (number, run) in (0..).zip(recording.runs()) {
        let process = run.process as usize;
        if run.time_ns <= time_ns && wanted.contains(process) {
            runs.insert(process, number);
        }
    }
    runs
}

/// The last reading of the RSS of each process until some time: when, and how much.
fn readings(recording: &Recording, until_ns: u64) -> FastMap<usize, (u64, u64)> {
    let mut last: FastMap<usize, (u64, u64)> = FastMap::default();
    for reading in recording.memory_readings().unwrap_or_default() {
        let (time_ns, rss_bytes) = (reading.record.head.time_ns, reading.record.rss_bytes);
        if time_ns <= until_ns {
            let known = last.entry(reading.process).or_default();
            *known = (*known).max((time_ns, rss_bytes));
        }
    }
    last
}

/// The arguments of runs.
type Arguments = FastMap<u32, Vec<String>>;

/// The time that is asked for, and what is known of it.
struct Then<'a> {
    recording: &'a Recording,
    from_ns: u64,
    to_ns: Option<u64>,
    samples: Samples<2>,
    runs: FastMap<usize, u32>,
    readings: FastMap<usize, (u64, u64)>,
}

impl Then<'_> {
    /// The arguments of the runs, from the trace.
    fn arguments(&self, path: &Path) -> Result<Arguments, AnalysisError> {
        let recording = self.recording;
        let mut arguments = Arguments::default();
        if !recording.knows().all(&[Quantity::Argv]) {
            return Ok(arguments);
        }
        let mut wanted = Bits::default();
        let mut at_time: FastMap<(usize, u64), u32> = FastMap::default();
        for number in self.runs.values() {
            let Some(run) = recording.runs().get(*number as usize) else { continue };
            wanted.insert(run.process as usize);
            at_time.insert((run.process as usize, run.time_ns), *number);
        }
        each_call(
            recording,
            path,
            |process| wanted.contains(process),
            |_, _| (),
            |process, event| {
                let Body::Exec(exec) = event.body else { return };
                if let Some(run) = at_time.get(&(process, exec.record.head.time_ns)) {
                    arguments
                        .insert(*run, exec.argv.iter().map(|argument| text(argument)).collect());
                }
            },
        )?;
        Ok(arguments)
    }

    fn process(&self, at: usize, arguments: &Arguments) -> AliveProcess {
        let recording = self.recording;
        let process = &recording.processes()[at];
        let run = self.runs.get(&at).copied();
        let ran = run.and_then(|run| recording.runs().get(run as usize));
        let program = ran.map_or(process.program(), |run| run.program as usize);
        let state = self.state(process);
        let cpu = recording.knows().some(&[Quantity::Cpu], self.cpu(process));
        let (rss_bytes, rss_read_ns) = self.rss(at).unzip();
        let until_ns = self.to_ns.unwrap_or(self.from_ns);
        let ended_ns = process.ended_ns().unwrap_or(u64::MAX);
        let age_ns = match self.to_ns {
            None => self.from_ns.saturating_sub(process.started_ns().unwrap_or(process.born_ns)),
            Some(to_ns) => ended_ns.min(to_ns).saturating_sub(process.born_ns.max(self.from_ns)),
        };
        AliveProcess {
            serial: process.serial,
            pid: process.pid,
            ppid: self.parent(process, until_ns.min(ended_ns.saturating_sub(1))),
            born_ns: since(recording, process.born_ns),
            ended_ns: process.ended_ns().map(|ended_ns| since(recording, ended_ns)),
            age_ns,
            threads: self.threads(process),
            state: state.map(|state| state.letter),
            waits_for: state.and_then(|state| state.waits_for),
            cpu_ns: cpu.map(|cpu| cpu.likely_ns),
            cpu_low_ns: cpu.map(|cpu| cpu.low_ns),
            cpu_high_ns: cpu.map(|cpu| cpu.high_ns),
            rss_bytes,
            rss_read_ns: rss_read_ns.map(|time_ns| since(recording, time_ns)),
            program: recording.programs().get(program).map_or_else(String::new, |p| p.name.clone()),
            arguments: run.and_then(|run| arguments.get(&run)).cloned(),
            is_fork: ran.is_some_and(|run| run.process as usize != at),
        }
    }

    /// CPU time up to the time, or during the interval.
    fn cpu(&self, process: &Process) -> CpuAt {
        let at_end = self.samples.cpu(self.recording, process, 1);
        match self.to_ns {
            None => at_end,
            Some(_) => at_end.since(self.samples.cpu(self.recording, process, 0)),
        }
    }

    /// An interval has no one state.
    fn state(&self, process: &Process) -> Option<State> {
        if self.to_ns.is_some() {
            return None;
        }
        let tasks = process.tasks().map(|task| (task, self.samples.around(task, 0)));
        state(self.recording, tasks, self.from_ns)
    }

    fn threads(&self, process: &Process) -> u64 {
        let until_ns = self.to_ns.unwrap_or(self.from_ns);
        let tasks = process.tasks().map(|task| &self.recording.tasks()[task]);
        let alive = tasks.filter(|task| {
            let ended = task.ended_ns().is_some_and(|ended_ns| ended_ns <= self.from_ns);
            task.born_ns <= until_ns && !ended && !task.zombie
        });
        alive.count() as u64
    }

    /// The pid of the parent at a time: of the one that forked it, or of the one that had adopted it by
    /// its end.
    fn parent(&self, process: &Process, time_ns: u64) -> Option<i32> {
        let alive = |at: usize| {
            Some(&self.recording.processes()[at]).filter(|parent| is_alive(parent, time_ns))
        };
        let parent = process.parent().and_then(alive);
        parent.or_else(|| process.reaper().and_then(alive)).map(|parent| parent.pid)
    }

    /// The last reading of the RSS of the program that ran, with its time.
    fn rss(&self, at: usize) -> Option<(u64, u64)> {
        let recording = self.recording;
        let process = &recording.processes()[at];
        let ran = self.runs.get(&at).and_then(|run| recording.runs().get(*run as usize));
        let since_ns = ran.map_or(0, |run| run.time_ns).max(process.born_ns);
        let until_ns = self.to_ns.unwrap_or(self.from_ns);
        let page_bytes = u64::from(recording.header().page_bytes);
        let samples = process.tasks().filter_map(|task| self.samples.around(task, 1).before);
        let sampled = samples
            .map(|sample| (sample.head.time_ns, sample.rss_pages.saturating_mul(page_bytes)));
        let read = self.readings.get(&at).copied();
        let usable = sampled.chain(read).filter(|(time_ns, rss_bytes)| {
            (since_ns..=until_ns).contains(time_ns) && *rss_bytes > 0
        });
        usable.max().map(|(time_ns, rss_bytes)| (rss_bytes, time_ns))
    }
}
