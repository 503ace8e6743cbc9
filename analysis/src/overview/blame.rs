//! Why the command failed: from its exit status down to the process that failed first, and who ended it.

use proctrace_findings::{EndStep, FatalSignal};
use proctrace_wire::{Outcome, signal_name};

use crate::recording::Recording;
use crate::recording::fast::FastMap;
use crate::recording::process::Process;
use crate::recording::waits::{SentSignal, Waker};

/// A shell exits with this plus the signal's number if a signal ended the command it waited for.
const SHELL_SIGNAL: i32 = 128;
/// `SI_KERNEL` of sigaction(2).
const BY_KERNEL: i32 = 0x80;
const SIGALRM: u16 = 14;

/// The chain of failures, the first cause first and the command last; empty if the command succeeded
/// or was not recorded.
pub(crate) fn cause(recording: &Recording) -> Vec<EndStep> {
    if recording.header.command.is_empty() {
        return Vec::new();
    }
    let Some(outcome) = recording.processes.first().and_then(outcome) else { return Vec::new() };
    if outcome == Outcome::Code(0) {
        return Vec::new();
    }
    let failed = Failed::of(recording);
    let mut chain = vec![0];
    let mut at = 0;
    while let Some(next) = failed.responsible_for(recording, at) {
        // A child ends before its parent, so there is no circle; but times may be damaged.
        if chain.contains(&next) {
            break;
        }
        chain.push(next);
        at = next;
    }
    chain.iter().rev().map(|process| step(recording, *process)).collect()
}

/// Every process that a signal ended, in order of time, with the sender.
pub(crate) fn fatal_signals(recording: &Recording) -> Vec<FatalSignal> {
    let mut found: Vec<(u64, FatalSignal)> = Vec::new();
    let last_sent = last_sent(recording);
    for (at, process) in recording.processes.iter().enumerate() {
        let (Some(Outcome::Signal(signal)), Some(ended_ns)) =
            (outcome(process), process.ended_ns())
        else {
            continue;
        };
        found.push((
            ended_ns,
            FatalSignal {
                time_ns: ended_ns.saturating_sub(recording.first_ns),
                pid: process.pid,
                program: recording.program_of(process).name.clone(),
                signal: signal_name(signal).into_owned(),
                sent_by: sender_among(recording, at, signal, |process| {
                    last_sent.get(&(process, signal)).copied()
                }),
            },
        ));
    }
    found.sort_by_key(|(ended_ns, _)| *ended_ns);
    found.into_iter().map(|(_, signal)| signal).collect()
}

fn outcome(process: &Process) -> Option<Outcome> {
    process.ended_ns().and(process.status()).map(Outcome::of_status)
}

fn step(recording: &Recording, at: usize) -> EndStep {
    let process = &recording.processes[at];
    let outcome = outcome(process).unwrap_or(Outcome::Code(0));
    let signal = match outcome {
        Outcome::Signal(signal) => Some(signal),
        // A handler of the signal may have ended the program with this status.
        Outcome::Code(code) => (code > SHELL_SIGNAL).then(|| code - SHELL_SIGNAL),
    };
    EndStep {
        time_ns: process.ended_ns().unwrap_or(0).saturating_sub(recording.first_ns),
        pid: process.pid,
        program: recording.program_of(process).name.clone(),
        how: outcome.name().into_owned(),
        sent_by: signal.and_then(|signal| sender_of(recording, at, signal)),
    }
}

/// Failed processes by the process that waited for them.
struct Failed {
    /// Of the reaper, in order of their ends.
    children: Vec<(usize, u64, usize)>,
}

impl Failed {
    fn of(recording: &Recording) -> Self {
        let mut children = Vec::new();
        for (at, process) in recording.processes.iter().enumerate() {
            let failed = outcome(process).is_some_and(|outcome| outcome != Outcome::Code(0));
            if let (true, Some(parent), Some(ended_ns)) =
                (failed, process.parent(), process.ended_ns())
            {
                children.push((parent, ended_ns, at));
            }
        }
        children.sort_unstable();
        Self { children }
    }

    /// The child whose failure made a process fail.
    ///
    /// A process passes on a status (`sh -c`, wrappers, 128 + n for a signal), usually the last one; or
    /// it gives up with its own, as make(1) does: then the first failure counts after which it started
    /// nothing more.
    fn responsible_for(&self, recording: &Recording, at: usize) -> Option<usize> {
        let process = &recording.processes[at];
        let Some(Outcome::Code(code)) = outcome(process) else { return None };
        let begin = self.children.partition_point(|(parent, ..)| *parent < at);
        let end = self.children.partition_point(|(parent, ..)| *parent <= at);
        let ended_ns = process.ended_ns()?;
        let before =
            || self.children[begin..end].iter().filter(|(_, child_ns, _)| *child_ns <= ended_ns);
        let passed_on =
            before().rev().find(|(_, _, child)| match outcome(&recording.processes[*child]) {
                Some(Outcome::Code(childs)) => childs == code,
                Some(Outcome::Signal(signal)) => SHELL_SIGNAL + signal == code,
                None => false,
            });
        if let Some((_, _, child)) = passed_on {
            return Some(*child);
        }
        let last_born_ns = recording
            .processes
            .iter()
            .filter(|child| child.parent() == Some(at))
            .map(|child| child.born_ns)
            .max()?;
        before().find(|(_, child_ns, _)| *child_ns >= last_born_ns).map(|(_, _, child)| *child)
    }
}

/// Who sent the last signal of this number to a process; `None` if it is not known.
pub(crate) fn sender_of(recording: &Recording, at: usize, signal: i32) -> Option<String> {
    sender_among(recording, at, signal, |process| {
        let sent_to =
            |sent: &&SentSignal| sent.process == process && i32::from(sent.signal) == signal;
        recording.signals.iter().rev().find(sent_to)
    })
}

/// The same, with a way to find that signal.
fn sender_among<'a>(
    recording: &'a Recording,
    at: usize,
    signal: i32,
    last_sent: impl FnOnce(u32) -> Option<&'a SentSignal>,
) -> Option<String> {
    let process = u32::try_from(at).ok()?;
    if signal == 9 && recording.oom_killed.contains(&process) {
        return Some("the out-of-memory killer".to_owned());
    }
    last_sent(process).map(|sent| sender(recording, sent))
}

/// The last signal of each number to each process: there may be as many as processes that a signal ended, so
/// that a search for each would take the square of their number.
fn last_sent(recording: &Recording) -> FastMap<(u32, i32), &SentSignal> {
    let signals = recording.signals.iter();
    signals.map(|sent| ((sent.process, i32::from(sent.signal)), sent)).collect()
}

/// Who sent a signal, in words.
pub(crate) fn sender(recording: &Recording, sent: &SentSignal) -> String {
    match sent.sender {
        Waker::Task(task) => {
            let Some(process) = recording.tasks.get(task as usize).map(|task| task.process())
            else {
                return "unknown".to_owned();
            };
            if process == sent.process as usize {
                return "itself".to_owned();
            }
            let process = &recording.processes[process];
            format!("{} (pid {})", recording.program_of(process).name, process.pid)
        }
        Waker::Interrupt if sent.signal == SIGALRM => "a timer".to_owned(),
        Waker::Interrupt => "the kernel".to_owned(),
        Waker::Outside(pid) if sent.sender_name.is_empty() => {
            format!("pid {pid}, which is not of the recording")
        }
        Waker::Outside(_) if sent.code == BY_KERNEL => {
            format!("the kernel, because of {}", sent.sender_name)
        }
        Waker::Outside(pid) => {
            format!("{} (pid {pid}), which is not of the recording", sent.sender_name)
        }
        Waker::None | Waker::Unknown => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene, pid_of};

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

    #[test]
    fn a_signal_from_outside_is_the_cause_whatever_the_children_did() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/job", (0, 0));
        scene.fork(MS, 1, 2).exit_with(3 * MS, 2, (0, 0), code(1));
        scene.signal(4 * MS, 1, 9, (0, "condor_starter"));
        scene.exit_with(5 * MS, 1, (0, 0), |exit| exit.status = 9);
        let by = "condor_starter (pid 1), which is not of the recording";
        assert_eq!(chain(&mut scene, 5 * MS), [step("job", "SIGKILL", Some(by))]);
    }

    #[test]
    fn a_fatal_signal_is_from_the_last_sender_of_this_signal_to_this_process() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(MS, 1, 2).fork(MS, 1, 3);
        // Blocked or handled at first; then one of another number, and one to another process.
        scene.signal(2 * MS, 2, 15, (1, "sh")).signal(4 * MS, 2, 15, (3, "sh"));
        scene.signal(5 * MS, 2, 1, (1, "sh")).signal(5 * MS, 3, 15, (1, "sh"));
        for task in [2, 3] {
            scene.exit_with(6 * MS, task, (0, 0), |exit| exit.status = 15);
        }
        scene.exit(7 * MS, 1, (0, 0));
        let killed = fatal_signals(&scene.load(Some((7 * MS, 0, 0))));
        let senders: Vec<_> = killed.iter().map(|killed| killed.sent_by.clone()).collect();
        assert_eq!(senders, [3, 1].map(|by| Some(format!("sh (pid {})", pid_of(by)))));
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
