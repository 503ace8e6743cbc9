//! The path by process and program: what each did on it, from one exec to the next.

use std::ops::Range;

use proctrace_classify::fast::FastMap;
use proctrace_recording::Recording;
use proctrace_recording::process::Process;

use super::{CriticalPath, Doing};

/// Activity of a process on the path while it ran one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index of the process.
    pub process: u32,
    /// Number of the program.
    pub program: u32,
    pub doing: Doing,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Step {
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// The steps of a path: its parts, divided at execs. Adjacent ones that differ only in the task are
/// joined.
pub fn steps(recording: &Recording, path: &CriticalPath) -> Vec<Step> {
    let programs = Programs::of(recording, path);
    let mut steps: Vec<Step> = Vec::with_capacity(path.parts.len());
    for part in &path.parts {
        let process = recording.tasks()[part.task as usize].process();
        for (program, time) in programs.between(process, part.begin_ns, part.end_ns) {
            let (process, doing) = (super::number(process), part.doing);
            let (begin_ns, end_ns) = (time.start, time.end);
            match steps.last_mut() {
                Some(last)
                    if (last.process, last.program, last.doing) == (process, program, doing) =>
                {
                    last.end_ns = end_ns;
                }
                _ => steps.push(Step { process, program, doing, begin_ns, end_ns }),
            }
        }
    }
    steps
}

/// The programs that the processes on a path ran.
struct Programs<'a> {
    recording: &'a Recording,
    /// Time and program of each exec, in order of time, by process.
    execs: FastMap<u32, Vec<(u64, u32)>>,
}

impl<'a> Programs<'a> {
    fn of(recording: &'a Recording, path: &CriticalPath) -> Self {
        let process = |task: u32| super::number(recording.tasks()[task as usize].process());
        let mut execs: FastMap<u32, Vec<(u64, u32)>> =
            path.parts.iter().map(|part| (process(part.task), Vec::new())).collect();
        for run in recording.runs() {
            if let Some(execs) = execs.get_mut(&run.process) {
                execs.push((run.time_ns, run.program));
            }
        }
        execs.values_mut().for_each(|execs| execs.sort_by_key(|(time_ns, _)| *time_ns));
        Self { recording, execs }
    }

    /// The programs of a process between two times, each with its time.
    fn between(&self, process: usize, begin_ns: u64, end_ns: u64) -> Vec<(u32, Range<u64>)> {
        let execs = self.execs.get(&super::number(process)).map_or(&[][..], Vec::as_slice);
        let first = execs.partition_point(|(time_ns, _)| *time_ns <= begin_ns);
        let end = execs.partition_point(|(time_ns, _)| *time_ns < end_ns).max(first);
        let before = match first.checked_sub(1) {
            Some(at) => execs[at].1,
            None => self.before_exec(&self.recording.processes()[process], execs.first()),
        };
        let later = &execs[first..end];
        let begins = [(begin_ns, before)].into_iter().chain(later.iter().copied());
        let ends = later.iter().map(|(time_ns, _)| *time_ns).chain([end_ns]);
        let programs =
            begins.zip(ends).map(|((begin_ns, program), end_ns)| (program, begin_ns..end_ns));
        programs.filter(|(_, time)| !time.is_empty()).collect()
    }

    /// The program of a process before its first exec: its forker's. Before that of the command, the
    /// recorder prepares it.
    fn before_exec(&self, process: &Process, first: Option<&(u64, u32)>) -> u32 {
        let forker = self.recording.spawner_of(process).map(super::number);
        forker.or(first.map(|(_, program)| *program)).unwrap_or(super::number(process.program()))
    }
}
