//! `record --job-first`: the command runs whatever becomes of its recording, and its status is passed on.
//!
//! A batch system takes 125 for a failure of the job, and runs it again or tells its user so.

use std::ffi::OsString;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};

use anyhow::{Error, Result, anyhow};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitStatus, waitpid};

use super::status_of;
use crate::args::RecordArgs;
use crate::{exit_code, say};
use proctrace_record::{Fate, Stage, forget_file_limit};
use proctrace_trace::Outcome;

/// Socket that syslog(3) writes to; journald reads there, too.
const NODE_LOG: &str = "/dev/log";
/// Facility "user", severity "warning": RFC 5424, section 6.2.1.
const USER_WARNING: u32 = 8 + 4;

/// Records, or else runs the command without.
pub(super) fn run(
    args: &RecordArgs,
    record: impl FnOnce(Fate) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let fate = Fate::default();
    // The recorder blocks signals, which the command would inherit.
    let mask = SigSet::thread_get_mask();
    let error = match guarded(|| record(fate.clone())) {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    lost(&error);
    if let Some(outcome) = outcome_of(&fate) {
        return Ok(status_of(outcome));
    }
    collect_helpers();
    forget_file_limit();
    if let Ok(mask) = mask {
        // A job with blocked signals is better than none.
        let _ = mask.thread_set_mask();
    }
    let [program, arguments @ ..] = &args.command[..] else { return Err(error) };
    let failed = Command::new(program).args(arguments).exec();
    let program: &OsString = program;
    let error = Error::new(failed).context(format!("cannot execute {}", program.display()));
    Ok(super::cannot_execute(&error))
}

/// Does something of which a failure must not be that of the job, not even a panic: libraries panic where no thread can
/// be started.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(anyhow!("proctrace failed; its message is above")))
}

/// Lets writes beyond the job's limit of file sizes fail, instead of ending the recorder that has the job's status.
pub(super) fn outlive_file_limit() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Failing that, the limit acts as on any program.
    let _ = signals.thread_block();
}

/// Says on stderr and in the node's log that a recording is lost.
fn lost(error: &Error) {
    tell(&format!("this job is not recorded, and runs all the same: {}", causes(error)));
}

/// Says there that a recording failed before its end, and that the job did as it did.
pub(super) fn incomplete(error: &Error, outcome: Outcome) {
    tell(&format!(
        "the recording failed, not the job, which {outcome}; that is passed on: {}",
        causes(error)
    ));
}

fn causes(error: &Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn tell(text: &str) {
    say::note(text);
    // There may be no log, and it may be full: the job comes first.
    let _ = log(text);
}

fn log(text: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let text = proctrace_report::escape::terminal(text);
    let line = format!("<{USER_WARNING}>proctrace[{}]: {text}", std::process::id());
    socket.send_to(line.as_bytes(), NODE_LOG)?;
    Ok(())
}

/// Waits for the children of a recorder that has not started the command: what traces it ends when the recording is given up. The
/// command takes the place of the recorder, and would find them among its own children.
fn collect_helpers() {
    while !matches!(waitpid(None, None), Err(errno) if errno != Errno::EINTR) {}
}

/// Waits for the command, if it was started. Other children of the recorder, such as the process that traces the command, end with
/// a status of their own.
fn outcome_of(fate: &Fate) -> Option<Outcome> {
    let root = match fate.stage() {
        Stage::NotStarted => return None,
        Stage::Ended(outcome) => return Some(outcome),
        Stage::Started(root) => root,
    };
    loop {
        match waitpid(root, None) {
            Ok(WaitStatus::Exited(_, code)) => return Some(Outcome::Code(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Some(Outcome::Signal(signal as i32)),
            Ok(_) | Err(Errno::EINTR) => {}
            // It ran, and nobody knows how it ended: it is not run again.
            Err(_) => return Some(Outcome::Code(i32::from(exit_code::RECORDING_FAILED))),
        }
    }
}
