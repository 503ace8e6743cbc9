//! Signals that end processes, and who sent them, in words.

use proctrace_classify::fast::FastMap;
use proctrace_findings::FatalSignal;
use proctrace_recording::Recording;
use proctrace_recording::waits::{SentSignal, Waker};
use proctrace_wire::{Outcome, signal_name};

use crate::kernels::own_doing;
use crate::outcomes::outcome;

/// `SI_KERNEL` of sigaction(2).
const BY_KERNEL: i32 = 0x80;
const SIGALRM: u16 = 14;
const SIGKILL: i32 = 9;
const OOM_KILLER: &str = "the out-of-memory killer";

/// Every process that a signal ended, in order of time, with the sender.
pub fn fatal_signals(recording: &Recording) -> Vec<FatalSignal> {
    let mut found: Vec<(u64, FatalSignal)> = Vec::new();
    let last_sent = last_sent(recording);
    for (at, process) in recording.processes().iter().enumerate() {
        let (Some(Outcome::Signal(signal)), Some(ended_ns)) =
            (outcome(process), process.ended_ns())
        else {
            continue;
        };
        found.push((
            ended_ns,
            FatalSignal {
                time_ns: recording.since_start_ns(ended_ns),
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

/// Sender of the last signal of this number to a process; `None` if it is not known.
pub fn sender_of(recording: &Recording, at: usize, signal: i32) -> Option<String> {
    sender_among(recording, at, signal, |_| last_to(recording, at, signal))
}

/// The last signal of this number to a process.
pub(crate) fn last_to(recording: &Recording, at: usize, signal: i32) -> Option<&SentSignal> {
    let sent_to =
        |sent: &&SentSignal| sent.process as usize == at && i32::from(sent.signal) == signal;
    recording.signals().unwrap_or_default().iter().rev().find(sent_to)
}

/// True if a process sent a signal.
pub(crate) fn is_from(recording: &Recording, sent: &SentSignal, process: usize) -> bool {
    let Waker::Task(task) = sent.sender else { return false };
    recording.tasks().get(task as usize).is_some_and(|task| task.process() == process)
}

/// The same, with a way to find that signal.
fn sender_among<'a>(
    recording: &'a Recording,
    at: usize,
    signal: i32,
    last_sent: impl FnOnce(u32) -> Option<&'a SentSignal>,
) -> Option<String> {
    let process = u32::try_from(at).ok()?;
    if signal == SIGKILL && recording.was_oom_killed(process) {
        return Some(OOM_KILLER.to_owned());
    }
    last_sent(process).map(|sent| sender(recording, sent))
}

/// The reason the kernel sent a signal on its own account, in whosever context that was, where the signal
/// tells.
fn cause_in_kernel(sent: &SentSignal) -> Option<&'static str> {
    const HANGUP: u16 = 1;
    const KEYS: [u16; 3] = [2, 3, 20];
    const ERRORS: [u16; 5] = [4, 5, 7, 8, 11];
    match (sent.signal, sent.code) {
        // n_tty.c sends these when it reads the character, often in a kernel thread.
        (signal, BY_KERNEL) if KEYS.contains(&signal) => Some("the terminal"),
        (HANGUP, BY_KERNEL) => Some("the kernel, as its terminal or session has ended"),
        // A code above 0 is of the kernel's: sigaction(2).
        (signal, 1..) if ERRORS.contains(&signal) => Some("an error of its own"),
        _ => None,
    }
}

/// The last signal of each number to each process: there may be as many as processes that a signal ended, so
/// that a search for each would take the square of their number.
fn last_sent(recording: &Recording) -> FastMap<(u32, i32), &SentSignal> {
    let signals = recording.signals().unwrap_or_default().iter();
    signals.map(|sent| ((sent.process, i32::from(sent.signal)), sent)).collect()
}

/// Sender of a signal, in words.
pub fn sender(recording: &Recording, sent: &SentSignal) -> String {
    if i32::from(sent.signal) == SIGKILL && recording.was_oom_killed(sent.process) {
        return OOM_KILLER.to_owned();
    }
    if let Some(cause) = cause_in_kernel(sent) {
        return cause.to_owned();
    }
    if let Some(cause) = own_doing(recording, sent) {
        return cause;
    }
    match sent.sender {
        Waker::Task(task) => {
            let Some(process) = recording.tasks().get(task as usize).map(|task| task.process())
            else {
                return "unknown".to_owned();
            };
            if process == sent.process as usize {
                return "itself".to_owned();
            }
            let process = &recording.processes()[process];
            format!("{} (pid {})", recording.program_of(process).name, process.pid)
        }
        Waker::Interrupt if sent.signal == SIGALRM => "a timer".to_owned(),
        Waker::Interrupt => "the kernel".to_owned(),
        Waker::Outside(pid) if sent.sender_name.is_empty() => {
            format!("pid {pid} (not of the recording)")
        }
        Waker::Outside(_) if sent.code == BY_KERNEL => {
            format!("the kernel, because of {}", sent.sender_name)
        }
        Waker::Outside(pid) => {
            format!("{} (pid {pid}, not of the recording)", sent.sender_name)
        }
        Waker::None | Waker::Unknown => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, pid_of};

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
}
