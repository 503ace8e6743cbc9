//! The process for which a cgroup was made: what a job ran, and how it ended.

use std::collections::BTreeMap;
use std::path::Path;

use proctrace_classify::names::base;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_replay::Exec;
use proctrace_wire::Outcome;
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::{EXEC_BEFORE, EXEC_WITHHELD};

use crate::details::calls::each_exec;

/// The command of a job, and its outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRoot {
    /// Its arguments, or only its name; empty if not even that is known.
    pub command: Vec<String>,
    /// Its outcome; `None` if that was not recorded.
    pub outcome: Option<Outcome>,
}

/// Batch systems' and container engines' own processes, which are in the cgroup before the job is: slurmstepd(8),
/// the first process of runc and crun, and the monitors of containers.
const NOT_THE_JOB: &[&str] = &[
    "slurmstepd",
    "runc",
    "crun",
    "youki",
    "conmon",
    "containerd-shim",
    "containerd-shim-runc-v2",
];
/// The file to which slurmd copies the script of a job.
const BATCH_SCRIPT: &str = "slurm_script";
/// Command that slurmstepd runs in the step of a job's own processes (`PrologFlags=Contain`).
const EXTERN_STEP: [&str; 2] = ["sleep", "100000000"];

/// A program that a process ran.
struct Ran {
    process: usize,
    time_ns: u64,
    /// True if it ran already when the recording began, and so before the job did.
    before: bool,
    argv: Vec<String>,
}

impl Ran {
    fn of(process: usize, exec: &Exec) -> Self {
        let argv = exec.argv.iter().map(|argument| to_text(argument).into_owned());
        let exe = to_text(&exec.exe).into_owned();
        let bits = exec.record.bits;
        let known = bits & EXEC_WITHHELD == 0;
        let argv: Vec<String> = argv.collect();
        Self {
            process,
            time_ns: exec.record.head.time_ns,
            before: bits & EXEC_BEFORE != 0,
            argv: if argv.is_empty() && known && !exe.is_empty() { vec![exe] } else { argv },
        }
    }

    fn is_the_jobs(&self) -> bool {
        let name = self.argv.first().map(|name| name_of(name)).unwrap_or_default();
        !is_not_the_job(&name) && self.argv != EXTERN_STEP
    }

    fn is_batch_script(&self) -> bool {
        self.argv.iter().take(2).any(|argument| name_of(argument) == BATCH_SCRIPT)
    }
}

/// `slurmstepd: [77.batch]` and `runc:[2:INIT]` are names that programs gave themselves.
fn name_of(argument: &str) -> String {
    let name = argument.split([':', ' ']).next().unwrap_or_default();
    to_text(base(name.as_bytes())).into_owned()
}

fn is_not_the_job(name: &str) -> bool {
    // Debian's is slurmstepd-wlm.
    NOT_THE_JOB.contains(&name) || name.starts_with("slurmstepd-")
}

/// Finds it: the script of a batch job, if there is one; or else the first program that ran in the cgroup, of those
/// that were moved there or started there from outside, or, where these are the batch system's own, of their children.
///
/// # Errors
/// If the trace cannot be read again.
pub fn job_root(recording: &Recording, path: &Path) -> Result<JobRoot, AnalysisError> {
    let is_root = |process: usize| recording.processes()[process].is_root();
    // By process; of one that was there before, the program that it ran then comes first.
    let mut first: BTreeMap<usize, Ran> = BTreeMap::new();
    let mut script: Option<Ran> = None;
    let take = |process: usize, _, exec: &Exec| {
        let ran = Ran::of(process, exec);
        if script.is_none() && ran.is_batch_script() {
            script = Some(ran);
            return;
        }
        if !ran.is_the_jobs() {
            return;
        }
        match first.get(&process) {
            // What it has become in the cgroup says more than what it was before.
            Some(known) if !known.before || ran.before => {}
            _ => {
                first.insert(process, ran);
            }
        }
    };
    each_exec(recording, path, take, |_, _| {})?;
    let by_time = |ran: &&Ran| (ran.time_ns, ran.process);
    let found = script.as_ref().or_else(|| {
        let roots = first.values().filter(|ran| is_root(ran.process));
        roots.min_by_key(by_time).or_else(|| first.values().min_by_key(by_time))
    });
    let program = |process: usize| {
        let program = recording.programs().get(recording.processes()[process].program());
        program.map(|program| program.name.clone()).filter(|name| !is_not_the_job(&name_of(name)))
    };
    let (process, command) = match found {
        Some(ran) if !ran.argv.is_empty() => (ran.process, ran.argv.clone()),
        Some(ran) => (ran.process, program(ran.process).into_iter().collect()),
        // Nothing is known but names.
        None => {
            let named = |process: usize| Some((process, vec![program(process)?]));
            let roots = (0..recording.processes().len()).filter(|process| is_root(*process));
            match roots.into_iter().find_map(named) {
                Some(named) => named,
                None => return Ok(JobRoot::default()),
            }
        }
    };
    let of = |process: usize| recording.processes()[process].status().map(Outcome::of_status);
    let outcome = match &script {
        Some(_) => of(process),
        None => {
            let batch_systems = |at: &usize| {
                let program = recording.programs().get(recording.processes()[*at].program());
                program.is_some_and(|program| is_not_the_job(&name_of(&program.name)))
            };
            let parent =
                |process: usize| recording.processes()[process].parent().filter(batch_systems);
            outcome_of_tasks(process, first.keys().copied(), parent, of)
        }
    };
    Ok(JobRoot { command, outcome })
}

/// Outcome of a job without a script. Its tasks are the children of one process of the batch system, for each
/// step another one; srun(1) has the status of the worst task, and of several steps nobody has one.
fn outcome_of_tasks(
    process: usize,
    all: impl Iterator<Item = usize>,
    parent: impl Fn(usize) -> Option<usize>,
    outcome: impl Fn(usize) -> Option<Outcome>,
) -> Option<Outcome> {
    let Some(step) = parent(process) else { return outcome(process) };
    let mut worst = outcome(process)?;
    for (other, its_step) in all.filter_map(|other| Some((other, parent(other)?))) {
        if its_step != step {
            return None;
        }
        worst = match (worst, outcome(other)?) {
            (Outcome::Signal(one), Outcome::Signal(other)) => Outcome::Signal(one.max(other)),
            (signal @ Outcome::Signal(_), _) | (_, signal @ Outcome::Signal(_)) => signal,
            (Outcome::Code(one), Outcome::Code(other)) => Outcome::Code(one.max(other)),
        };
    }
    Some(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_script_ends_as_its_worst_task() {
        // Processes 10 and 20 are of the batch system.
        let parent = |process: usize| (process < 9).then_some(if process < 5 { 10 } else { 20 });
        let of = |outcomes: &[(usize, Option<Outcome>)]| {
            let outcome = |process: usize| outcomes.iter().find(|(at, _)| *at == process)?.1;
            outcome_of_tasks(outcomes[0].0, outcomes.iter().map(|(at, _)| *at), parent, outcome)
        };
        let code = |code| Some(Outcome::Code(code));
        assert_eq!(of(&[(1, code(0)), (2, code(4))]), code(4));
        assert_eq!(of(&[(1, code(4)), (2, Some(Outcome::Signal(9)))]), Some(Outcome::Signal(9)));
        assert_eq!(of(&[(1, code(0)), (2, None)]), None);
        assert_eq!(of(&[(1, code(0)), (6, code(0))]), None, "two steps");
        // Its own process, whatever it starts.
        assert_eq!(of(&[(9, code(3)), (1, code(7))]), code(3));
    }
}
