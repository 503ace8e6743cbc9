//! The cause of a failed command: from its exit status down to the process that failed first, and who
//! ended it.

use std::ops::RangeInclusive;

use proctrace_classify::fast::FastMap;
use proctrace_findings::EndStep;
use proctrace_recording::Recording;
use proctrace_wire::Outcome;

use crate::last_miss::{
    AT_ONCE_NS, Missed, NOT_FOUND, begun_ns, last_failed, missed_at_last, runs_in_shell, told,
};
use crate::outcomes::{failed, outcome};
use crate::senders::{is_from, last_to, sender_of};

/// Signals whose default action is a core dump: the program made an error, or aborted (signal(7)).
/// SIGQUIT is not included, as it comes from a terminal.
pub(super) const FAULTS: [i32; 9] = [4, 5, 6, 7, 8, 11, 24, 25, 31];
/// A shell exits with this plus the signal's number if a signal ended the command it waited for.
const SHELL_SIGNAL: i32 = 128;
/// Statuses with which programs fail whatever has failed.
const COMMON_STATUSES: [i32; 2] = [1, 2];
/// Programs that give up with a status of their own after the first failure, when the others have ended.
const MAKES: [&str; 3] = ["make", "gmake", "ninja"];
/// xargs(1): a command failed, also by a signal, or could not be run; it may have started others after that.
const XARGS_FAILED: RangeInclusive<i32> = 123..=127;
/// xargs(1): a command exited with 255, which ends it.
const XARGS_ENDED: i32 = 124;
const XARGS_ENDS: i32 = 255;
/// xargs(1): a signal ended a command.
const XARGS_SIGNALLED: i32 = 125;
/// timeout(1): its command took too long.
const TIMED_OUT: i32 = 124;

/// The chain of failures, the first cause first and the command last; empty if the command succeeded
/// or was not recorded.
pub fn cause(recording: &Recording) -> Vec<EndStep> {
    if recording.header().command.is_empty() {
        return Vec::new();
    }
    let Some(outcome) = recording.processes().first().and_then(outcome) else { return Vec::new() };
    if outcome == Outcome::Code(0) {
        return Vec::new();
    }
    let failed = Failed::of(recording);
    let chain = failed.chain(recording, 0);
    let steps = chain.iter().rev().map(|(at, because)| {
        let own = failed.own_miss(recording, *at).filter(|_| *because != Because::Certain);
        let last_failed = own.and_then(|missed| told(recording, *at, missed));
        EndStep { last_failed, ..step(recording, *at, *because) }
    });
    let mut steps: Vec<EndStep> = steps.collect();
    if let (Some(first), Some((at, _))) = (steps.first_mut(), chain.last())
        && first.sent_by.is_none()
    {
        first.last_failed = last_failed(recording, *at);
    }
    steps
}

/// How sure it is that a process failed because another one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Because {
    /// It has a status for that, or can do nothing else.
    Certain,
    /// It ended at once with the same status, which is one with which programs also fail by themselves.
    AtOnce,
    /// There is no better explanation.
    Likely,
}

fn step(recording: &Recording, at: usize, because: Because) -> EndStep {
    let process = &recording.processes()[at];
    let outcome = outcome(process).unwrap_or(Outcome::Code(0));
    let signal = match outcome {
        Outcome::Signal(signal) => Some(signal),
        // A handler of the signal may have ended the program with this status.
        Outcome::Code(code) => (code > SHELL_SIGNAL).then(|| code - SHELL_SIGNAL),
    };
    EndStep {
        time_ns: recording.since_start_ns(process.ended_ns().unwrap_or(0)),
        pid: process.pid,
        program: recording.program_of(process).name.clone(),
        how: outcome.name().into_owned(),
        is_certain: because == Because::Certain,
        sent_by: signal.and_then(|signal| sender_of(recording, at, signal)),
        last_failed: None,
    }
}

/// Failed processes by the process that waited for them.
pub(crate) struct Failed {
    /// Children of each reaper, in order of their ends.
    children: Vec<(usize, u64, usize)>,
    /// The birth of the last child of each process.
    last_born_ns: FastMap<usize, u64>,
}

impl Failed {
    pub(crate) fn of(recording: &Recording) -> Self {
        let (mut children, mut last_born_ns) = (Vec::new(), FastMap::default());
        for (at, process) in recording.processes().iter().enumerate() {
            if let Some(parent) = process.parent() {
                let last_ns: &mut u64 = last_born_ns.entry(parent).or_default();
                *last_ns = process.born_ns.max(*last_ns);
            }
            if let (true, Some(parent), Some(ended_ns)) =
                (failed(process), process.parent(), process.ended_ns())
            {
                children.push((parent, ended_ns, at));
            }
        }
        children.sort_unstable();
        Self { children, last_born_ns }
    }

    /// A process that failed, and those whose failures made it fail, the first cause last; with each, how sure it is that
    /// the next one did.
    fn chain(&self, recording: &Recording, at: usize) -> Vec<(usize, Because)> {
        let mut chain = vec![(at, Because::Certain)];
        while let Some((at, because)) = chain.last_mut() {
            let Some((next, how_sure)) = self.responsible_for(recording, *at) else { break };
            *because = how_sure;
            // A child ends before its parent, so there is no circle; but times may be damaged.
            if chain.iter().any(|(at, _)| *at == next) {
                break;
            }
            chain.push((next, Because::Certain));
        }
        chain
    }

    /// The process because of which this one failed at once, and what it missed at last.
    pub(crate) fn missed<'a>(
        &self,
        recording: &'a Recording,
        at: usize,
    ) -> Option<(usize, Missed<'a>)> {
        let chain = self.chain(recording, at);
        let is_sure = chain.iter().all(|(_, because)| *because != Because::Likely);
        let (first, _) = *chain.last().filter(|_| is_sure)?;
        Some((first, missed_at_last(recording, first)?))
    }

    /// What a process could not use at last, after all failures of its children. A question whether something is there is
    /// no use: it is often asked only because of a failure, to tidy up.
    fn own_miss<'a>(&self, recording: &'a Recording, at: usize) -> Option<Missed<'a>> {
        let missed = missed_at_last(recording, at).filter(Missed::is_needed)?;
        let last = self.children_of(at).last();
        last.is_none_or(|(_, child_ns, _)| missed.time_ns > *child_ns).then_some(missed)
    }

    /// The failed children of a process, in order of their ends.
    fn children_of(&self, at: usize) -> &[(usize, u64, usize)] {
        let begin = self.children.partition_point(|(parent, ..)| *parent < at);
        let end = self.children.partition_point(|(parent, ..)| *parent <= at);
        &self.children[begin..end]
    }

    /// The child whose failure made a process fail, and how sure that is.
    ///
    /// That cannot be recorded, only be concluded. A process that started nothing after a failure, and then ended at
    /// once with the same status, passed it on (`sh -e`, wrappers, 128 + n for a signal). make(1) and xargs(1) tell by
    /// statuses of their own that a command failed. Anything else is likely at best: a status of 1 is what everything
    /// fails with, and a script may ignore failures for a long time before it fails itself, such as because of a file
    /// that it does not find.
    fn responsible_for(&self, recording: &Recording, at: usize) -> Option<(usize, Because)> {
        let process = &recording.processes()[at];
        let children = self.children_of(at);
        let ended_ns = process.ended_ns()?;
        // A shell runs its last command in its own process: that knows nothing of those before.
        let begun_ns = begun_ns(recording, process);
        let lives = begun_ns..=ended_ns;
        let before = || children.iter().filter(|(_, child_ns, _)| lives.contains(child_ns));
        let certain =
            |child: &(usize, u64, usize)| -> (usize, Because) { (child.2, Because::Certain) };
        let likely =
            |child: &(usize, u64, usize)| -> (usize, Because) { (child.2, Because::Likely) };
        let code = match outcome(process)? {
            Outcome::Code(code) => code,
            // bash and make end by the signal that has ended their child, and send it to themselves.
            ended @ Outcome::Signal(signal) => {
                let is_own = last_to(recording, at, signal)
                    .is_some_and(|sent| is_from(recording, sent, at) && sent.code <= 0);
                let mut same =
                    before().filter(|(.., at)| outcome(&recording.processes()[*at]) == Some(ended));
                return same.next_back().filter(|_| is_own).map(certain);
            }
        };
        let program = &*recording.program_of(process).name;
        let line = recording.line_of(process);
        // What `-exec COMMAND \;` runs may fail as it likes (find(1)).
        if program == "find" && !line.ends_with('+') {
            return None;
        }
        if program == "xargs" && XARGS_FAILED.contains(&code) {
            let of = |child: usize| outcome(&recording.processes()[child]);
            let ended_so = |child: &&(usize, u64, usize)| match (code, of(child.2)) {
                (XARGS_ENDED, Some(Outcome::Code(childs))) => childs == XARGS_ENDS,
                (XARGS_SIGNALLED, Some(Outcome::Signal(_))) => true,
                (XARGS_ENDED | XARGS_SIGNALLED, _) => false,
                _ => true,
            };
            return before().find(ended_so).map(certain);
        }
        // It ends what it started by a signal, and has a status for that (timeout(1)).
        if program == "timeout" && code == TIMED_OUT {
            return before().next_back().map(certain);
        }
        let last_born_ns = *self.last_born_ns.get(&at)?;
        // Nothing was started after these failures.
        let last = || before().filter(|(_, child_ns, _)| *child_ns >= last_born_ns);
        if MAKES.contains(&program) {
            // If it has gone on, the failure may have been one that it is told to ignore.
            let ignored = || before().next().filter(|_| keeps_going(line)).map(likely);
            return last().next().map(certain).or_else(ignored);
        }
        let is_passed_on =
            |child: &&(usize, u64, usize)| match outcome(&recording.processes()[child.2]) {
                Some(Outcome::Code(childs)) => childs == code,
                Some(Outcome::Signal(signal)) => SHELL_SIGNAL + signal == code,
                None => false,
            };
        let is_common = COMMON_STATUSES.contains(&code);
        let is_shell = runs_in_shell(recording, process);
        let passed_on = last().rfind(is_passed_on);
        let at_once = passed_on.filter(|(_, child_ns, _)| ended_ns - child_ns <= AT_ONCE_NS);
        let is_sure = !is_common || is_driver(program) || (is_shell && ends_at_failures(line));
        if let Some(child) = at_once {
            let because = if is_sure { Because::Certain } else { Because::AtOnce };
            return Some((child.2, because));
        }
        // A script may have tidied up before it passed on a status that tells something.
        if !is_common && let Some(child) = before().rfind(is_passed_on) {
            return Some(likely(child));
        }
        let is_at_once =
            |(_, child_ns, _): &&(usize, u64, usize)| ended_ns - child_ns <= AT_ONCE_NS;
        let recent = last().next_back().filter(is_at_once);
        // It went on for long after the last failure, until it could not use something itself.
        if recent.is_none() && self.own_miss(recording, at).is_some() {
            return None;
        }
        // A shell that waited for a child that failed, and ended with another status: `wait $job; exit 1`.
        if let Some(child) = recent.filter(|_| is_shell && code != NOT_FOUND) {
            return Some(likely(child));
        }
        if let Some(child) = passed_on {
            return Some(likely(child));
        }
        // A shell usually has this status because it found a program nowhere.
        if is_shell && code == NOT_FOUND {
            return None;
        }
        let is_fault = |child: &&(usize, u64, usize)| {
            let outcome = outcome(&recording.processes()[child.2]);
            matches!(outcome, Some(Outcome::Signal(signal)) if FAULTS.contains(&signal))
        };
        last().next().or_else(|| before().rfind(is_fault)).map(likely)
    }
}

/// True of a program that only starts others which do its work, and fails if one does: compilers.
fn is_driver(program: &str) -> bool {
    let without_version =
        program.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    let names = ["cc", "c++", "g++", "clang", "collect2", "gfortran"];
    names.into_iter().any(|name| without_version.ends_with(name) || program == name)
}

/// True of a command line that tells a shell to end when a command fails (`-e`, `-o errexit`).
fn ends_at_failures(line: &str) -> bool {
    let mut words = line.split(' ').skip(1);
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty())
        else {
            return false;
        };
        if letters == "-" {
            return false;
        }
        // bash takes names of options with one dash, too: -rcfile, -verbose.
        let is_set = word.starts_with('-') && !letters.starts_with('-') && letters.len() < 6;
        let named = if letters.ends_with('o') { words.next() } else { None };
        if is_set && (letters.contains('e') || named == Some("errexit")) {
            return true;
        }
    }
    false
}

/// True of a command line that tells make or ninja to go on after a failure (`-k`, `--keep-going`).
fn keeps_going(line: &str) -> bool {
    line.split(' ').skip(1).any(|word| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => long == "-keep-going",
        Some(letters) => letters.contains('k'),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::senders::fatal_signals;
    use proctrace_scenes::{MS, S, Scene, pid_of};

    fn chain(scene: &mut Scene, end_ns: u64) -> Vec<(String, String, Option<String>)> {
        let recording = scene.load(Some((end_ns, 0, 0)));
        let steps = cause(&recording).into_iter();
        steps.map(|step| (step.program, step.how, step.sent_by)).collect()
    }

    fn step(program: &str, how: &str, by: Option<&str>) -> (String, String, Option<String>) {
        (program.to_owned(), how.to_owned(), by.map(str::to_owned))
    }

    fn code(code: u32) -> impl Fn(&mut proctrace_wire::layout::Exit) {
        move |exit| exit.status = code << 8
    }

    #[test]
    fn make_gives_up_because_of_the_first_failure_after_which_it_started_nothing() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/make", (0, 0));
        // One that fails early and is ignored, then gcc with cc1, which is killed; another job fails
        // while make waits for it.
        scene.fork(MS, 1, 2).exec(2 * MS, 2, "/bin/test", (0, 0));
        scene.exit_with(3 * MS, 2, (0, 0), code(1));
        scene.fork(10 * MS, 1, 3).exec(11 * MS, 3, "/bin/gcc", (0, 0));
        scene.fork(12 * MS, 3, 4).exec(13 * MS, 4, "/lib/cc1", (0, 0));
        scene.fork(14 * MS, 1, 5).exec(15 * MS, 5, "/bin/ld", (0, 0));
        scene.exit_with(20 * MS, 4, (0, 0), |exit| {
            exit.status = 9;
            exit.bits |= proctrace_wire::layout::EXIT_OOM;
        });
        scene.exit_with(21 * MS, 3, (0, 0), code(4)).exit_with(30 * MS, 5, (0, 0), code(1));
        scene.exit_with(31 * MS, 1, (0, 0), code(2));
        assert_eq!(
            chain(&mut scene, 31 * MS),
            [
                step("cc1", "SIGKILL", Some("the out-of-memory killer")),
                step("gcc", "exit 4", None),
                step("make", "exit 2", None),
            ]
        );
    }

    #[test]
    fn a_shell_passes_on_the_last_status() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/sh", (0, 0));
        scene.fork(MS, 1, 2).exec(2 * MS, 2, "/bin/a", (0, 0));
        scene.exit_with(3 * MS, 2, (0, 0), code(143));
        scene.fork(4 * MS, 1, 3).exec(5 * MS, 3, "/bin/b", (0, 0)).signal(8 * MS, 3, 15, (1, "sh"));
        scene.exit_with(9 * MS, 3, (0, 0), |exit| exit.status = 15);
        scene.exit_with(10 * MS, 1, (0, 0), code(143));
        let by = format!("sh (pid {})", pid_of(1));
        assert_eq!(
            chain(&mut scene, 10 * MS),
            [step("b", "SIGTERM", Some(&by)), step("sh", "exit 143", None)]
        );
    }

    /// A program whose children exit with these statuses one after the other, 10 ms each, and that itself exits
    /// so long after the last one; the statuses of the chain, and whether each follows from the one before.
    fn after(program: &str, children: &[u32], later_ms: u64, status: u32) -> Vec<(String, bool)> {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, program, (0, 0));
        let mut now_ns = MS;
        for (child, task) in children.iter().zip(2..) {
            scene.fork(now_ns, 1, task).exec(now_ns + MS, task, "/bin/child", (0, 0));
            scene.exit_with(now_ns + 9 * MS, task, (0, 0), |exit| exit.status = *child);
            now_ns += 10 * MS;
        }
        let end_ns = now_ns + later_ms * MS;
        let recording = scene
            .exit_with(end_ns, 1, (0, 0), |exit| exit.status = status)
            .load(Some((end_ns, 0, 0)));
        cause(&recording).into_iter().map(|step| (step.how, step.is_certain)).collect()
    }

    fn steps(steps: &[(&str, bool)]) -> Vec<(String, bool)> {
        steps.iter().map(|(how, is_certain)| ((*how).to_owned(), *is_certain)).collect()
    }

    #[test]
    fn a_common_status_is_passed_on_only_if_nothing_was_started_after_the_failure() {
        let sh = |children: &[u32], later_ms, status: u32| {
            after("/bin/sh", children, later_ms, status << 8)
        };
        assert_eq!(sh(&[256], 1, 1), steps(&[("exit 1", true), ("exit 1", false)]));
        assert_eq!(sh(&[256, 0], 1, 1), steps(&[("exit 1", true)]));
        // A status that tells something is the child's.
        assert_eq!(sh(&[7 << 8], 1, 7), steps(&[("exit 7", true), ("exit 7", true)]));
        // A shell has this one only for what it does not find.
        assert_eq!(sh(&[256], 1, 127), steps(&[("exit 127", true)]));
        // It may have ignored the failure, and failed itself much later.
        assert_eq!(sh(&[256], 500, 1), steps(&[("exit 1", true), ("exit 1", false)]));
        assert_eq!(sh(&[512], 1, 1), steps(&[("exit 2", true), ("exit 1", false)]));
        // 124 is that of timeout(1); a script tidies up before it passes it on.
        assert_eq!(sh(&[124 << 8, 0], 1, 124), steps(&[("exit 124", true), ("exit 124", false)]));
    }

    #[test]
    fn a_job_that_a_shell_waited_for_is_the_cause() {
        // `job & test -e x; wait $!; exit 1`: the test fails first, with the status of the shell.
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(MS, 1, 2).exec(2 * MS, 2, "/bin/job", (0, 0));
        scene.fork(3 * MS, 1, 3).exec(4 * MS, 3, "/bin/test", (0, 0));
        scene.exit_with(5 * MS, 3, (0, 0), code(1)).exit_with(600 * MS, 2, (0, 0), code(4));
        scene.exit_with(601 * MS, 1, (0, 0), code(1));
        let found = chain(&mut scene, 601 * MS);
        assert_eq!(found, [step("job", "exit 4", None), step("sh", "exit 1", None)]);
    }

    #[test]
    fn a_shell_may_be_told_to_end_at_the_first_failure() {
        for line in ["sh -e", "bash -xeu x.sh", "sh -u -e x.sh", "bash -o pipefail -o errexit x.sh"]
        {
            assert!(ends_at_failures(line), "{line}");
        }
        for line in [
            "sh",
            "sh x.sh -e",
            "bash --norc x.sh",
            "sh -c true",
            "sh +e",
            "sh -o posix x.sh",
            "sh -- -e",
            "bash -verbose x.sh",
        ] {
            assert!(!ends_at_failures(line), "{line}");
        }
    }

    #[test]
    fn a_crash_that_nothing_else_explains_is_likely_the_cause() {
        let found = after("/bin/job.py", &[256, 11, 0], 1, 256);
        assert_eq!(found, steps(&[("SIGSEGV", true), ("exit 1", false)]));
    }

    #[test]
    fn xargs_tells_that_a_command_failed_though_it_went_on() {
        let found = after("/usr/bin/xargs", &[0, 256, 0], 1, 123 << 8);
        assert_eq!(found, steps(&[("exit 1", true), ("exit 123", true)]));
        // One that exits with 255 ends it, whatever failed before.
        let found = after("/usr/bin/xargs", &[256, 255 << 8], 1, 124 << 8);
        assert_eq!(found, steps(&[("exit 255", true), ("exit 124", true)]));
    }

    #[test]
    fn a_shell_ends_by_the_signal_that_ended_its_child() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/bash", (0, 0)).fork(MS, 1, 2).exec(2 * MS, 2, "/bin/job", (0, 0));
        scene.signal_by_kernel(5 * MS, 2, 2, (0, "kworker/u8:2"));
        scene.exit_with(6 * MS, 2, (0, 0), |exit| exit.status = 2);
        scene.signal(7 * MS, 1, 2, (1, "bash"));
        scene.exit_with(8 * MS, 1, (0, 0), |exit| exit.status = 2);
        assert_eq!(
            chain(&mut scene, 8 * MS),
            [step("job", "SIGINT", Some("the terminal")), step("bash", "SIGINT", Some("itself"))]
        );
    }

    #[test]
    fn a_signal_from_outside_is_the_cause_whatever_the_children_did() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/job", (0, 0));
        scene.fork(MS, 1, 2).exit_with(3 * MS, 2, (0, 0), code(1));
        scene.signal(4 * MS, 1, 9, (0, "condor_starter"));
        scene.exit_with(5 * MS, 1, (0, 0), |exit| exit.status = 9);
        let by = "condor_starter (pid 1, not of the recording)";
        assert_eq!(chain(&mut scene, 5 * MS), [step("job", "SIGKILL", Some(by))]);
    }

    #[test]
    fn success_has_no_cause() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(MS, 1, 2);
        scene.exit_with(3 * MS, 2, (0, 0), |exit| exit.status = 9);
        scene.exit(4 * MS, 1, (0, 0));
        let recording = scene.load(Some((4 * MS, 0, 0)));
        assert!(cause(&recording).is_empty());
        let killed = fatal_signals(&recording);
        assert_eq!(killed.len(), 1);
        assert_eq!((&*killed[0].signal, &killed[0].sent_by), ("SIGKILL", &None));
    }
}
