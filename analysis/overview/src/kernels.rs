//! Signals that the kernel sends to a process for what the process does: nobody reads its pipe any more, or a limit is
//! reached. It sends them in the name of the process itself.

use proctrace_findings::time;

use proctrace_recording::Recording;
use proctrace_recording::waits::{SentSignal, Waker};

const SIGKILL: u16 = 9;
const SIGPIPE: u16 = 13;
const SIGXCPU: u16 = 24;
const SIGXFSZ: u16 = 25;
/// SI_USER: also of send_sig(9) in the kernel, such as in pipe_write() of fs/pipe.c.
const BY_USER: i32 = 0;
/// SI_KERNEL: check_rlimit() of kernel/time/posix-cpu-timers.c.
const BY_KERNEL: i32 = 128;
/// The hard limit of CPU time is one of whole seconds, and is checked at scheduler ticks.
const SECOND_NS: u64 = 1_000_000_000;
const AFTER_LIMIT_NS: u64 = 100_000_000;
/// A shell forks all of a pipeline at once, from the first writer to the last reader.
const PIPELINE_NS: u64 = SECOND_NS;
/// Processes that others may have started meanwhile.
const MEANWHILE_MAX: usize = 4096;
/// A writer notices that nobody reads when it writes again.
const UNNOTICED_MAX_NS: u64 = 10 * SECOND_NS;
/// Maximum time that a reader takes to end: it closes its descriptors first, as head(1) does, and may wait for a CPU
/// then.
const ENDING_NS: u64 = SECOND_NS;

/// The reason the kernel sent a signal to a process in its own name; `None` if it did not. Where that cannot be told from
/// a signal that the process sent itself, the reason names both.
pub(crate) fn own_doing(recording: &Recording, sent: &SentSignal) -> Option<String> {
    let is_own = match sent.sender {
        Waker::Task(task) => {
            recording.tasks().get(task as usize)?.process() == sent.process as usize
        }
        // A tick finds a limit that was passed.
        Waker::Interrupt => true,
        _ => false,
    };
    if !is_own {
        return None;
    }
    match (sent.signal, sent.code) {
        // kill(2) has the same code, and a process seldom sends this one to itself.
        (SIGPIPE, BY_USER) => Some(no_reader(recording, sent).unwrap_or_else(|| {
            "itself, or the kernel because nobody reads what it writes".to_owned()
        })),
        (SIGXFSZ, BY_USER) => Some("the kernel, at its limit of file size (ulimit -f)".to_owned()),
        (SIGXCPU, BY_KERNEL) => Some("the kernel, at its limit of CPU time (ulimit -t)".to_owned()),
        (SIGKILL, BY_KERNEL) => {
            // The limit is of the CPU time as ticks measure it.
            let ticks = recording.ticks_of(recording.processes().get(sent.process as usize)?);
            let used_ns = ticks.user_ns.saturating_add(ticks.system_ns);
            let is_at_limit = used_ns >= SECOND_NS && used_ns % SECOND_NS <= AFTER_LIMIT_NS;
            Some(match is_at_limit {
                true => "the kernel, at its hard limit of CPU time (ulimit -H -t)".to_owned(),
                false => "the kernel".to_owned(),
            })
        }
        _ => None,
    }
}

/// The reader of the pipe: which one it was is not recorded. In a pipeline it is the next process that the same parent
/// started, if that has ended by then.
fn no_reader(recording: &Recording, sent: &SentSignal) -> Option<String> {
    let at = sent.process as usize;
    let writer = recording.processes().get(at)?;
    let started = recording.processes().get(at + 1..)?.iter().take(MEANWHILE_MAX);
    let reader = started.into_iter().find(|other| other.parent() == writer.parent())?;
    let ended_ns = reader.ended_ns()?;
    let is_of_pipeline = reader.born_ns.saturating_sub(writer.born_ns) <= PIPELINE_NS;
    let is_over = ended_ns <= sent.time_ns.saturating_add(ENDING_NS);
    let is_lately = sent.time_ns.saturating_sub(ended_ns) <= UNNOTICED_MAX_NS;
    if !(is_of_pipeline && is_over && is_lately) {
        return None;
    }
    let name = &recording.program_of(reader).name;
    let when = match sent.time_ns.checked_sub(ended_ns) {
        Some(before_ns) => format!("had ended {} before", time(before_ns)),
        None => "was ending".to_owned(),
    };
    Some(format!("the kernel, as {name} (pid {}), probably its reader, {when}", reader.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    #[test]
    fn the_reader_is_the_next_that_the_shell_started() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/bash", (0, 0));
        scene.fork(MS, 1, 2).exec(2 * MS, 2, "/bin/true", (0, 0)).exit(3 * MS, 2, (0, 0));
        scene.fork(10 * MS, 1, 3).exec(11 * MS, 3, "/bin/yes", (0, 0));
        scene.fork(10 * MS, 1, 4).exec(11 * MS, 4, "/bin/head", (0, 0)).exit(15 * MS, 4, (0, 0));
        let recording = scene.load(Some((S, 0, 0)));
        let sent = |at_ns: u64, signal, code| SentSignal {
            time_ns: recording.first_ns() + at_ns,
            process: 2,
            signal,
            code,
            sender: Waker::Task(2),
            sender_name: String::new(),
        };
        let says = own_doing(&recording, &sent(16 * MS, SIGPIPE, 0)).unwrap();
        assert!(says.starts_with("the kernel, as head (pid "), "{says}");
        assert!(says.ends_with("), probably its reader, had ended 1.0 ms before"), "{says}");
        let says = own_doing(&recording, &sent(14 * MS, SIGPIPE, 0)).unwrap();
        assert!(says.ends_with("), probably its reader, was ending"), "{says}");
        // Of two that run side by side, the other one is no reader: it was started later, or still runs.
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/bash", (0, 0));
        scene.fork(MS, 1, 2).exec(2 * MS, 2, "/bin/server", (0, 0));
        scene.fork(2 * S, 1, 3).exec(2 * S, 3, "/bin/true", (0, 0)).exit(3 * S, 3, (0, 0));
        let beside = scene.load(Some((4 * S, 0, 0)));
        let time_ns = beside.first_ns() + 3 * S + MS;
        let of_server = SentSignal { time_ns, process: 1, ..sent(0, SIGPIPE, 0) };
        let of_server = SentSignal { sender: Waker::Task(1), ..of_server };
        let says = own_doing(&beside, &of_server).unwrap();
        assert_eq!(says, "itself, or the kernel because nobody reads what it writes");
        // By tgkill(2) it sent that to itself.
        assert_eq!(own_doing(&recording, &sent(16 * MS, SIGPIPE, -6)), None);
        let limit = own_doing(&recording, &sent(16 * MS, SIGXFSZ, 0)).unwrap();
        assert_eq!(limit, "the kernel, at its limit of file size (ulimit -f)");
        // It has used no CPU time.
        let killed = own_doing(&recording, &sent(16 * MS, SIGKILL, 128));
        assert_eq!(killed.as_deref(), Some("the kernel"));
    }
}
