//! Errors of the eBPF source, with what the user can do about them.

use std::io;

use aya::programs::ProgramError;

use crate::capable::may_use_bpf;
use crate::seccomp::forbids_bpf;

/// Any error, on its way to one of these.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The recorder without analysis, which may be all that is installed.
const RECORDER: &str = "proctrace-recorder";

/// Name of the program that this runs in.
fn program() -> &'static str {
    let file = std::env::current_exe().unwrap_or_default();
    if file.file_name().is_some_and(|name| name == RECORDER) { RECORDER } else { "proctrace" }
}

/// Advice on how to allow some users to record.
pub(crate) fn advice() -> String {
    let program = program();
    format!(
        "let a group record what its members run, as root:\n\
         groupadd -r proctrace\n\
         install -g proctrace -m 0750 $(command -v {program}) /usr/local/bin\n\
         setcap cap_bpf,cap_perfmon+ep /usr/local/bin/{program}\n\
         or serve all users: {program} broker (docs/broker.md)"
    )
}

/// The reasons why recording is not possible.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel refuses for lack of privileges.
    #[error(
        "the kernel does not allow this user to use BPF ({call}: {source}).\n\
         Run with sudo, or {advice}\n\
         `{program} doctor` shows what this kernel and this user can do",
        advice = advice(),
        program = program()
    )]
    NotPermitted {
        /// The step that was refused.
        call: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A seccomp filter refuses, before the kernel looks at privileges.
    #[error(
        "a seccomp filter forbids bpf(2) ({call}).\n\
         Container engines install it, whatever rights a container has. Start it with a\n\
         profile that allows bpf(2), --security-opt seccomp=PROFILE (docs/broker.md),\n\
         or record from outside of it"
    )]
    Forbidden {
        /// The step that was refused.
        call: &'static str,
    },
    /// The programs were detached before the end.
    #[error(
        "the recording is incomplete: the process that kept its programs attached cannot be reached ({0})"
    )]
    Detached(#[source] io::Error),
    /// No type information: the programs cannot be relocated for this kernel.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux: {0}): proctrace needs Linux 5.15 or later, \
         built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoBtf(String),
    /// No task storage: tasks cannot be traced.
    #[error("this kernel has no BPF task storage ({0}): proctrace needs Linux 5.15 or later")]
    NoTaskStorage(#[source] io::Error),
    /// A required hook is unavailable.
    #[error("no usable hook for {event}: {tried}")]
    NoHook {
        /// The event that would be missing.
        event: &'static str,
        /// Each hook that was tried, and why it failed.
        tried: String,
    },
    /// The embedded object does not load.
    #[error("cannot load the BPF programs")]
    Load(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A map or a program is not as expected.
    #[error("cannot set up the BPF {what}")]
    SetUp {
        /// Name of the map or program.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An invalid option.
    #[error("{0}")]
    Option(String),
    /// The caller may not trace the process to be recorded.
    #[error(
        "{0} belongs to another user, or you may not trace it\n\
         Without root you can record only processes that have your user and group ids, do not run \
         a set-user-ID program, and have not disabled tracing by prctl(PR_SET_DUMPABLE)"
    )]
    NotYours(String),
    /// Something failed while recording.
    #[error("cannot {what}")]
    System {
        /// The step that failed, for "cannot …".
        what: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

impl ProbeError {
    /// Error of a step that the kernel refuses, or that a seccomp filter refuses to those who
    /// otherwise could do it.
    pub(crate) fn not_permitted(call: &'static str, source: io::Error) -> Self {
        match may_use_bpf() && forbids_bpf() {
            true => Self::Forbidden { call },
            false => Self::NotPermitted { call, source },
        }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    pub(crate) fn set_up<E>(what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::SetUp { what, source: source.into() }
    }
}

/// The innermost cause of an error: the kernel's own.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(ProgramError::LoadError { io_error, verifier_log }) = cause.downcast_ref() {
            return match complaint(&verifier_log.to_string()) {
                Some(complaint) => format!("{io_error}; the BPF verifier reports: {complaint}"),
                None => io_error.to_string(),
            };
        }
        match cause.source() {
            Some(next) => cause = next,
            None => return cause.to_string(),
        }
    }
}

/// The verifier's complaint: the last line of its log that is not statistics.
fn complaint(log: &str) -> Option<&str> {
    let is_statistics = |line: &str| {
        ["verification time", "stack depth", "processed "]
            .iter()
            .any(|statistics| line.starts_with(statistics))
    };
    log.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_statistics(line))
}

/// Returns the kernel's error if the cause is a lack of privileges.
pub(crate) fn not_permitted(error: &(dyn std::error::Error + 'static)) -> Option<io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The verifier also returns EACCES for programs that it considers unsafe.
        if let Some(ProgramError::LoadError { io_error, .. }) = error.downcast_ref() {
            let refused = io_error.raw_os_error() == Some(libc::EPERM);
            return refused.then(|| io::Error::from_raw_os_error(libc::EPERM));
        }
        if let Some(io) = error.downcast_ref::<io::Error>()
            && let Some(code @ (libc::EPERM | libc::EACCES)) = io.raw_os_error()
        {
            return Some(io::Error::from_raw_os_error(code));
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn the_complaint_is_before_the_statistics() {
        let log = "0: (79) r6 = *(u64 *)(r1 +0)\nR1 type=scalar expected=ptr_\n\
                   verification time 12 usec\nstack depth 8+0\nprocessed 3 insns (limit 1000000)\n\n";
        assert_eq!(complaint(log), Some("R1 type=scalar expected=ptr_"));
        assert_eq!(complaint("processed 3 insns\n"), None);
        assert_eq!(complaint(""), None);
    }
}
