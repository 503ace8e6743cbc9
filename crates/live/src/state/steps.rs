//! Sums by step of the workflow, each with the steps that are parts of it.

use proctrace_replay::Usage;

use super::classify::StepName;
use super::process::Process;
use super::rates::Recent;

/// Steps that are kept; processes of later ones count for none.
const STEPS_MAX: usize = 1 << 16;

/// Sums over the processes of a step and of its parts, ended and alive.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Position of the step that it is a part of.
    pub parent: Option<u32>,
    /// Time at which it began.
    pub began_ns: u64,
    /// Time of the last end of one of its processes.
    pub ended_ns: u64,
    /// Serial of its first process.
    pub first: u32,
    /// wait(2) status of its first process, if that has ended.
    pub status: Option<u32>,
    /// Processes, ended ones included.
    pub processes: u64,
    /// Those that are alive.
    pub alive: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time in nanoseconds, lately.
    pub cpu: Recent,
}

impl Step {
    /// Time from its begin to its end, or until now.
    pub fn wall_ns(&self, now_ns: u64) -> u64 {
        let end_ns = if self.alive > 0 { now_ns } else { self.ended_ns };
        end_ns.saturating_sub(self.began_ns)
    }
}

/// The steps of a recording, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    all: Vec<Step>,
}

impl Steps {
    /// All, in the order in which they began.
    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.all.iter()
    }

    /// True if there is no room for more.
    pub fn is_full(&self) -> bool {
        self.all.len() >= STEPS_MAX
    }

    /// The step at a position.
    pub fn get(&self, step: u32) -> Option<&Step> {
        self.all.get(step as usize)
    }

    /// Adds the steps that began with a program run of this process.
    pub(crate) fn add(
        &mut self,
        named: impl Fn(u32) -> Option<StepName>,
        first: u32,
        began_ns: u64,
    ) {
        while self.all.len() < STEPS_MAX
            && let Some(StepName { name, parent }) = named(self.all.len() as u32)
        {
            // A step that is a part of itself would have no end.
            let parent = parent.filter(|parent| (*parent as usize) < self.all.len());
            self.all.push(Step { name, parent, first, began_ns, ..Step::default() });
        }
    }

    /// Does this with a step, and with those that it is a part of.
    fn each(&mut self, mut step: Option<u32>, mut act: impl FnMut(&mut Step)) {
        while let Some(at) = step.and_then(|step| self.all.get_mut(step as usize)) {
            act(at);
            step = at.parent;
        }
    }

    /// A process is born into a step.
    pub(crate) fn born(&mut self, step: Option<u32>) {
        self.each(step, |step| {
            step.processes = step.processes.saturating_add(1);
            step.alive = step.alive.saturating_add(1);
        });
    }

    /// A process used the CPU.
    pub(crate) fn used(&mut self, step: Option<u32>, time_ns: u64, used: Usage) {
        self.each(step, |step| {
            step.cpu_ns = step.cpu_ns.saturating_add(used.run_ns);
            step.cpu.add(time_ns, used.run_ns);
        });
    }

    /// A process belongs to another step now, with all that it used.
    pub(crate) fn moves(&mut self, process: &Process, to: Option<u32>) {
        let (cpu_ns, cpu) = (process.used.run_ns, process.cpu);
        self.each(process.step, |step| {
            step.processes = step.processes.saturating_sub(1);
            step.alive = step.alive.saturating_sub(1);
            step.cpu_ns = step.cpu_ns.saturating_sub(cpu_ns);
            step.cpu.leave(cpu);
        });
        self.each(to, |step| {
            step.processes = step.processes.saturating_add(1);
            step.alive = step.alive.saturating_add(1);
            step.cpu_ns = step.cpu_ns.saturating_add(cpu_ns);
            step.cpu.join(cpu);
        });
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, process: &Process, time_ns: u64) {
        let (serial, status) = (process.serial, process.end.map(|(_, status)| status));
        self.each(process.step, |step| {
            step.alive = step.alive.saturating_sub(1);
            step.ended_ns = step.ended_ns.max(time_ns);
            if step.first == serial {
                step.status = status;
            }
        });
    }
}
