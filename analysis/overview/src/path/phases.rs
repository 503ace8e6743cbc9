//! The path by phase: the child of the command for which, or for whose descendants, the time went.

use proctrace_classify::fast::{Bits, FastMap, counters};
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
    let heads = Heads::of(recording.processes());
    let cpu = CpuTime::of(recording.bins(), recording.last_ns());
    let mut place: FastMap<u32, usize> = FastMap::default();
    let mut phases: Vec<Phase> = Vec::new();
    for step in steps {
        let head = heads.of_process[step.process as usize];
        let at = *place.entry(head).or_insert(phases.len());
        if at == phases.len() {
            let (process, command) = heads.child_and_command(head);
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

/// Phase of each process, named by its head: the child of the command that the process descends from, or the command; a
/// wrapper descends from none, and is its own.
///
/// The command is often a wrapper of what does the work: a shell with one child, `env`, `sudo`. Then
/// that child's children are the phases, and so on, unless it has none.
struct Heads {
    /// Four bytes each: there may be ten million processes, of which few are on the path.
    of_process: Vec<u32>,
    command: u32,
    wrappers: Bits,
}

impl Heads {
    fn of(processes: &[Process]) -> Self {
        // Parents precede their children; only a broken trace contradicts.
        let parent = |at: u32, process: &Process| {
            process.parent().and_then(|parent| u32::try_from(parent).ok()).filter(|it| *it < at)
        };
        let mut children = counters(processes.len());
        // The last child of each process that has any.
        let mut child = counters(processes.len());
        for (at, process) in (0..).zip(processes) {
            if let Some(parent) = parent(at, process) {
                children[parent as usize] += 1;
                child[parent as usize] = at;
            }
        }
        let (mut command, mut wrappers) = (0, Bits::default());
        while children.get(command as usize) == Some(&1)
            && children[child[command as usize] as usize] > 0
        {
            wrappers.insert(command as usize);
            command = child[command as usize];
        }
        // Overwritten from the first process on: the head of a parent is known before its children need it.
        let mut of_process = child;
        for (at, process) in (0..).zip(processes) {
            of_process[at as usize] = match parent(at, process) {
                _ if wrappers.contains(at as usize) || at == command => at,
                Some(parent) if parent == command => at,
                Some(parent) => of_process[parent as usize],
                None => command,
            };
        }
        Self { of_process, command, wrappers }
    }

    /// The child of the command, if the head is one, and the command: a wrapper's own time is its own.
    fn child_and_command(&self, head: u32) -> (Option<usize>, usize) {
        if head == self.command || self.wrappers.contains(head as usize) {
            return (None, head as usize);
        }
        (Some(head as usize), self.command as usize)
    }
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
