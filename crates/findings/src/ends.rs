//! How processes ended, other than with exit status 0.

use std::borrow::Cow;

use serde::Serialize;

use crate::Outcome;

/// Counts of processes by how they ended. Processes whose end was not recorded, because they were
/// still running or because the record was lost, are counted only in `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Processes that exited with status 0.
    pub succeeded: u64,
    /// Processes that exited with a non-zero status.
    pub failed: u64,
    /// Processes killed by a signal.
    pub signalled: u64,
    /// Subset of `signalled` that left a core dump.
    pub core_dumps: u64,
    /// Processes whose end is not known.
    pub unknown: u64,
    /// The failed and killed processes grouped by outcome and program, the most severe first: fault
    /// signals, SIGKILL, other signals, exit statuses; negative results of test commands (`grep`)
    /// are last.
    pub by_program: Vec<ProgramEnd>,
}

/// Processes that ran the same program and ended the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramEnd {
    /// The last program they ran.
    pub program: String,
    /// How they ended.
    pub outcome: Outcome,
    /// The outcome as text: "SIGSEGV", "exit 1".
    pub how: String,
    /// Number of processes.
    pub processes: u64,
    /// Number of those that left a core dump.
    pub core_dumps: u64,
    /// The pid of the first process that ended this way.
    pub example_pid: i32,
    /// The program that started it; empty if its parent was not recorded.
    pub example_parent: String,
}

impl Ends {
    /// Whether any process failed or was killed.
    pub fn any_abnormal(&self) -> bool {
        self.failed > 0 || self.signalled > 0
    }
}

impl Outcome {
    /// A short description: "exit 1", "SIGSEGV".
    pub fn word(self) -> String {
        match self {
            Self::Code(code) => format!("exit {code}"),
            Self::Signal(signal) => signal_name(signal).into_owned(),
        }
    }
}

/// Names of signals 1 to 31 on x86, ARM, POWER and s390: include/uapi/asm-generic/signal.h.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal; "signal 40" for signals without a name.
pub fn signal_name(signal: i32) -> Cow<'static, str> {
    let at = usize::try_from(signal).ok().and_then(|signal| signal.checked_sub(1));
    match at.and_then(|at| SIGNALS.get(at)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("signal {signal}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        for (signal, name) in [
            (1, "SIGHUP"),
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (31, "SIGSYS"),
            (0, "signal 0"),
            (64, "signal 64"),
            (-1, "signal -1"),
        ] {
            assert_eq!(signal_name(signal), name);
        }
        assert_eq!(Outcome::Code(7).word(), "exit 7");
        assert_eq!(Outcome::Signal(6).word(), "SIGABRT");
    }
}
