//! The last failed look-up or exec of a process, where that is a hint why the process failed.

use proctrace_classify::is_shell;
use proctrace_classify::names::{base, directory, errno};
use proctrace_findings::LastFailed;
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_wire::escape::to_text;
use proctrace_wire::{Family, Outcome, Quantity};

/// Maximum time between two failures: a process that fails because a child did does not do much in between.
pub(crate) const AT_ONCE_NS: u64 = 100_000_000;
/// Status of a shell that did not find a command (POSIX).
pub(crate) const NOT_FOUND: i32 = 127;

/// A failed look-up or exec.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Missed<'a> {
    pub(crate) time_ns: u64,
    /// Name of the family of calls.
    call: &'static str,
    /// As passed to the call.
    pub(crate) path: &'a [u8],
    /// True if a relative path is one in the working directory.
    pub(crate) is_from_cwd: bool,
    pub(crate) errno: u16,
}

impl Missed<'_> {
    /// True if the process wanted to use the file, other than to know whether it is there.
    pub(crate) fn is_needed(&self) -> bool {
        let needing = [Family::Open, Family::Chdir, Family::Exec];
        needing.into_iter().any(|family| family.name() == self.call)
    }
}

/// What a process that failed sought in vain at last: itself, or the shell that forked it to say so.
pub(crate) fn last_failed(recording: &Recording, at: usize) -> Option<LastFailed> {
    let missed = missed_at_last(recording, at).or_else(|| sought_before_fork(recording, at))?;
    told(recording, at, missed)
}

/// A failed look-up, with its time before the end of a process.
pub(crate) fn told(recording: &Recording, at: usize, missed: Missed<'_>) -> Option<LastFailed> {
    let Missed { time_ns, call, path, errno: number, .. } = missed;
    let before_ns = recording.processes()[at].ended_ns()?.checked_sub(time_ns)?;
    let path = to_text(path).into_owned();
    Some(LastFailed { call, path, error: errno(number), before_ns })
}

/// What a shell sought before it forked a child that only says that there is no such program: bash(1) looks along PATH
/// itself, and leaves the message to a child.
fn sought_before_fork(recording: &Recording, at: usize) -> Option<Missed<'_>> {
    let child = &recording.processes()[at];
    let is_not_found = Outcome::of_status(child.status()?) == Outcome::Code(NOT_FOUND);
    let parent = child.parent().filter(|_| is_not_found && child.execs == 0)?;
    let shell = recording.processes().get(parent)?;
    let missed = last_miss(recording, parent, begun_ns(recording, shell))?;
    let before_ns = child.born_ns.checked_sub(missed.time_ns)?;
    let is_it = before_ns <= AT_ONCE_NS
        && runs_in_shell(recording, shell)
        && is_of_programs(missed.path)
        && !looks_for_itself(recording, parent, missed.path);
    is_it.then_some(missed)
}

/// The last failed look-up of a process since a time, other than an exec.
fn last_miss(recording: &Recording, at: usize, since_ns: u64) -> Option<Missed<'_>> {
    // What has no times cannot be shortly before.
    let has_times = recording.knows().all(&[Quantity::Times]);
    let miss = recording.last_misses().filter(|_| has_times)?.of(at)?;
    let missed = recording.missed_paths()?.paths.get(miss.path as usize)?;
    let call = Family::ALL.get(usize::from(missed.family))?.name();
    let (path, is_from_cwd, errno) = (&*missed.path, miss.is_from_cwd, missed.errno);
    let missed = Missed { time_ns: miss.time_ns, call, path, is_from_cwd, errno };
    (missed.time_ns >= since_ns).then_some(missed)
}

/// What a process missed at last, if it ended at once.
pub(crate) fn missed_at_last(recording: &Recording, at: usize) -> Option<Missed<'_>> {
    let process = &recording.processes()[at];
    let ended_ns = process.ended_ns()?;
    // What another program of the process missed is not why this one failed.
    let miss = last_miss(recording, at, begun_ns(recording, process));
    let exec = recording.last_execs().and_then(|execs| execs.get(&at));
    let exec = exec.filter(|_| recording.knows().all(&[Quantity::Times])).map(|exec| Missed {
        time_ns: exec.time_ns,
        call: Family::Exec.name(),
        path: &exec.path,
        is_from_cwd: false,
        errno: exec.errno,
    });
    let missed = miss.into_iter().chain(exec).max_by_key(|missed| missed.time_ns)?;
    let (time_ns, path) = (missed.time_ns, missed.path);
    ended_ns.checked_sub(time_ns).filter(|before_ns| *before_ns <= AT_ONCE_NS)?;
    if was_found(recording, at, (time_ns, path))
        || (missed.call != Family::Exec.name() && looks_for_itself(recording, at, path))
    {
        return None;
    }
    Some(missed)
}

/// True if a process is a shell, whether with a script or not: a script gives the process its name.
pub(crate) fn runs_in_shell(recording: &Recording, process: &Process) -> bool {
    let first = recording.line_of(process).split(' ').next().unwrap_or_default();
    is_shell(&recording.program_of(process).name) || is_shell(&to_text(base(first.as_bytes())))
}

/// Time of the last exec of a process; 0 if it executed nothing.
pub(crate) fn begun_ns(recording: &Recording, process: &Process) -> u64 {
    let own_run = process.run().filter(|_| process.execs > 0);
    own_run.map_or(0, |run| recording.runs()[run as usize].time_ns)
}

/// True if the search went on in another directory and found the program: a child was started after it, and ran one of
/// this name.
fn was_found(recording: &Recording, at: usize, (time_ns, path): (u64, &[u8])) -> bool {
    let name = to_text(base(path));
    let after = recording.processes().partition_point(|process| process.born_ns < time_ns);
    let children = recording.processes()[after..].iter().filter(|child| child.parent() == Some(at));
    children.into_iter().any(|child| {
        let called = recording.line_of(child).split(' ').next();
        child.execs > 0 && (called == Some(&*name) || recording.program_of(child).name == *name)
    })
}

/// True if a shell looks for its own program along PATH, as bash does when it starts.
fn looks_for_itself(recording: &Recording, at: usize, path: &[u8]) -> bool {
    let line = recording.line_of(&recording.processes()[at]);
    let own = line.split(' ').next().unwrap_or_default().as_bytes();
    is_of_programs(path) && base(path) == base(own) && is_shell(&to_text(base(own)))
}

/// True if a path is one in a directory of programs.
fn is_of_programs(path: &[u8]) -> bool {
    path.starts_with(b"/") && matches!(base(directory(path)), b"bin" | b"sbin")
}
