//! Ends of processes: those that failed, and those that a signal killed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{Ends, ProgramEnd};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_wire::{Outcome, dumped_core};

use crate::blame::{FAULTS, cause};
use crate::senders::fatal_signals;

const SIGKILL: i32 = 9;

/// Programs whose exit status 1 is a result: their manuals say "no", "not found" or "they differ".
const ANSWER_1: [&str; 18] = [
    "[", "bzgrep", "cmp", "diff", "egrep", "expr", "false", "fgrep", "git", "grep", "pgrep",
    "pidof", "pkill", "ps", "test", "which", "xzgrep", "zgrep",
];

pub fn ends(recording: &Recording) -> Ends {
    let mut ends = Ends::default();
    let mut groups: BTreeMap<(&str, Outcome), Group<'_>> = BTreeMap::new();
    for process in recording.processes() {
        let Some(status) = known_status(process) else {
            ends.unknown += 1;
            continue;
        };
        let outcome = Outcome::of_status(status);
        let dumped = outcome.signal().is_some() && dumped_core(status);
        match outcome {
            Outcome::Code(0) => {
                ends.succeeded += 1;
                continue;
            }
            Outcome::Code(_) => ends.failed += 1,
            Outcome::Signal(_) => ends.signalled += 1,
        }
        ends.core_dumps += u64::from(dumped);
        let group = groups
            .entry((&*recording.program_of(process).name, outcome))
            .or_insert(Group { processes: 0, core_dumps: 0, first: process });
        group.processes += 1;
        group.core_dumps += u64::from(dumped);
        if process.ended_ns() < group.first.ended_ns() {
            group.first = process;
        }
    }
    let mut by_program: Vec<ProgramEnd> = groups
        .into_iter()
        .map(|((program, outcome), group)| ProgramEnd {
            program: program.to_owned(),
            outcome,
            how: outcome.name().into_owned(),
            processes: group.processes,
            core_dumps: group.core_dumps,
            example_pid: group.first.pid,
            example_parent: recording
                .spawner_of(group.first)
                .and_then(|parent| recording.programs().get(parent))
                .map_or_else(String::new, |parent| parent.name.clone()),
        })
        .collect();
    // They were in order of name and outcome, and the sort is stable.
    by_program.sort_by_key(|end| (rank(&end.program, end.outcome), Reverse(end.processes)));
    ends.by_program = by_program;
    ends.cause = cause(recording);
    ends.fatal_signals = fatal_signals(recording);
    ends
}

struct Group<'a> {
    processes: u64,
    core_dumps: u64,
    first: &'a Process,
}

/// The status of an ended process; `None` if its last task's exit was not recorded.
pub fn known_status(process: &Process) -> Option<u32> {
    process.ended_ns().and(process.status())
}

/// The severity of an outcome, worst first. A shell exits with 128 + n if a command was killed by
/// signal n, with 127 if it was not found, and with 126 if it could not be executed.
fn rank(program: &str, outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Signal(signal) if FAULTS.contains(&signal) => 0,
        Outcome::Signal(SIGKILL) => 1,
        Outcome::Signal(_) => 2,
        Outcome::Code(126..) => 3,
        Outcome::Code(1) if ANSWER_1.contains(&program) => 5,
        Outcome::Code(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{S, Scene, pid_of};

    /// A series of processes, each running one program and exiting with a status.
    fn scene(runs: &[(&str, u32)]) -> Scene {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/make", (0, 0));
        for ((path, status), task) in runs.iter().zip(2..) {
            scene.fork(S, 1, task).exec(S, task, path, (0, 0));
            scene.exit_with(u64::from(task) * S, task, (0, 0), |exit| exit.status = *status);
        }
        scene
    }

    fn code(code: u32) -> u32 {
        code << 8
    }

    #[test]
    fn the_worst_comes_first() {
        let mut scene = scene(&[
            ("/bin/grep", code(1)),
            ("/bin/grep", code(1)),
            ("/bin/grep", code(2)),
            ("/bin/sleep", 15),
            ("/lib/cc1", 11),
            ("/bin/true", 0),
            ("/usr/bin/python3", 9),
            ("/lib/cc1", 11 | 0x80),
            ("/bin/sh", code(139)),
            ("/bin/cc", code(1)),
            ("/bin/cc", code(1)),
        ]);
        let recording = scene.exit(20 * S, 1, (0, 0)).load(Some((20 * S, 0, 0)));
        let ends = ends(&recording);
        let lines: Vec<String> = ends
            .by_program
            .iter()
            .map(|end| format!("{} {} {}", end.program, end.how, end.processes))
            .collect();
        assert_eq!(
            lines,
            [
                "cc1 SIGSEGV 2",
                "python3 SIGKILL 1",
                "sleep SIGTERM 1",
                "sh exit 139 1",
                "cc exit 1 2",
                "grep exit 2 1",
                "grep exit 1 2",
            ]
        );
        assert_eq!((ends.succeeded, ends.failed, ends.signalled), (2, 6, 4));
        assert_eq!((ends.core_dumps, ends.unknown), (1, 0));
        let worst = &ends.by_program[0];
        assert_eq!((worst.core_dumps, worst.example_pid), (1, pid_of(6)));
        assert_eq!(worst.example_parent, "make");
    }

    #[test]
    fn an_end_that_was_not_recorded_is_not_known() {
        let mut scene = scene(&[("/bin/true", 0), ("/bin/false", code(1))]);
        scene.fork(S, 1, 9).sample(4 * S, 9, (0, 0));
        let ends = ends(&scene.exit(5 * S, 1, (0, 0)).load(None));
        assert_eq!((ends.succeeded, ends.failed, ends.unknown), (2, 1, 1));
        // The command itself counts, too.
        let alive = scene_of_one().load(None);
        assert_eq!(super::ends(&alive).unknown, 1);
    }

    fn scene_of_one() -> Scene {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/sleep", (0, 0));
        scene
    }
}
