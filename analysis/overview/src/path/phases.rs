//! The path by phase: the child of the command for which, or for whose descendants, the time went.

use proctrace_classify::fast::{Bits, counters};
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_recording::bins::Bins;
use proctrace_recording::process::Process;

use super::Doing;
use super::steps::Step;

/// A child of the command with its descendants, the command itself, or a wrapper of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Index of the child; `None` for the command itself, or a wrapper.
    pub process: Option<usize>,
    /// Index of the command, which is the last wrapper if there are any; or of the wrapper whose own time it is.
    pub command: usize,
    /// Time at which the path came to it first; `end_ns` is when it left last.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub spent: Spent,
    /// CPU time of the whole recording while the path was in this phase.
    pub cpu_ns: f64,
}

/// Division of time on the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub running_ns: u64,
    pub waiting_for_cpu_ns: u64,
    pub waiting_ns: u64,
}

impl Spent {
    pub fn add(&mut self, step: &Step) {
        let sum = match step.doing {
            Doing::Running => &mut self.running_ns,
            Doing::WaitingForCpu => &mut self.waiting_for_cpu_ns,
            Doing::Waiting(_) => &mut self.waiting_ns,
        };
        // Steps do not overlap, so that no sum can exceed the wall time.
        *sum += step.length_ns();
    }

    pub fn all_ns(&self) -> u64 {
        self.running_ns + self.waiting_for_cpu_ns + self.waiting_ns
    }
}

/// The phases that have time on the path, in order of time.
pub fn phases(recording: &Recording, steps: &[Step]) -> Vec<Phase> {
    let phase_of = phase_of(recording);
    let cpu = CpuTime::of(recording.bins(), recording.last_ns());
    // By child, and then by whose own time it is.
    let count = recording.processes().len();
    let mut place: Vec<Option<usize>> = vec![None; 2 * count];
    let mut phases: Vec<Phase> = Vec::new();
    for step in steps {
        let (process, command) = phase_of[step.process as usize];
        let place = &mut place[process.unwrap_or(count + command)];
        let at = *place.get_or_insert(phases.len());
        if at == phases.len() {
            let (begin_ns, end_ns) = (step.begin_ns, step.end_ns);
            let spent = Spent::default();
            phases.push(Phase { process, command, begin_ns, end_ns, spent, cpu_ns: 0.0 });
        }
        let phase = &mut phases[at];
        phase.end_ns = step.end_ns;
        phase.spent.add(step);
        phase.cpu_ns += cpu.until(step.end_ns) - cpu.until(step.begin_ns);
    }
    phases
}

/// Phase of each process: the child of the command that it descends from, and the command; a wrapper descends from
/// none, and stands for itself.
///
/// The command is often a wrapper of what does the work: a shell with one child, `env`, `sudo`. Then
/// that child's children are the phases, and so on, unless it has none.
fn phase_of(recording: &Recording) -> Vec<(Option<usize>, usize)> {
    let processes = recording.processes();
    // Parents precede their children; only a broken trace contradicts.
    let parent = |at: usize, process: &Process| process.parent().filter(|parent| *parent < at);
    let mut children = counters(processes.len());
    let mut child = vec![None; processes.len()];
    for (at, process) in processes.iter().enumerate() {
        if let Some(parent) = parent(at, process) {
            children[parent] += 1;
            child[parent] = Some(at);
        }
    }
    let (mut command, mut wrappers) = (0, Bits::default());
    while let Some(only) = child.get(command).copied().flatten()
        && children[command] == 1
        && children[only] > 0
    {
        wrappers.insert(command);
        command = only;
    }
    let mut phase_of: Vec<(Option<usize>, usize)> = Vec::with_capacity(processes.len());
    for (at, process) in processes.iter().enumerate() {
        phase_of.push(match parent(at, process) {
            _ if wrappers.contains(at) => (None, at),
            _ if at == command => (None, command),
            Some(parent) if parent == command => (Some(at), command),
            Some(parent) => phase_of[parent],
            None => (None, command),
        });
    }
    phase_of
}

/// The CPU time of all tasks up to any time, from the recording's bins.
struct CpuTime<'a> {
    bins: &'a Bins,
    /// End of the recording: the last bin may end later.
    end_ns: u64,
    /// Sums at the beginning of each bin, and at the end of the last.
    sums_ns: Vec<f64>,
}

impl<'a> CpuTime<'a> {
    fn of(bins: &'a Bins, end_ns: u64) -> Self {
        let each = bins.of(BinSeries::User).iter().zip(bins.of(BinSeries::System));
        let sums = each.scan(0.0, |sum, (user, system)| {
            *sum += user + system;
            Some(*sum)
        });
        Self { bins, end_ns, sums_ns: [0.0].into_iter().chain(sums).collect() }
    }

    /// Sum until a time. Within a bin, CPU time is taken to be used evenly.
    fn until(&self, time_ns: u64) -> f64 {
        let (start_ns, width_ns) = (self.bins.start_ns, self.bins.width_ns.max(1));
        let last = self.sums_ns.len() - 1;
        let bin = usize::try_from(time_ns.saturating_sub(start_ns) / width_ns).unwrap_or(last);
        if bin >= last {
            return self.sums_ns[last];
        }
        let begin_ns = start_ns + width_ns * bin as u64;
        let length_ns = width_ns.min(self.end_ns.saturating_sub(begin_ns)).max(1);
        let part = time_ns.saturating_sub(begin_ns) as f64 / length_ns as f64;
        self.sums_ns[bin] + (self.sums_ns[bin + 1] - self.sums_ns[bin]) * part.min(1.0)
    }
}
