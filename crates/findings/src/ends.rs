//! How processes ended that did not end with exit status 0.

use std::borrow::Cow;

use serde::Serialize;

use crate::Outcome;

/// How processes ended. Those whose end was not recorded, because they were still running or because
/// the record was lost, are in `unknown` and in no other number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Processes that exited with status 0.
    pub succeeded: u64,
    /// Processes that exited with another status.
    pub failed: u64,
    /// Processes that a signal killed.
    pub signalled: u64,
    /// Of these, those that left a core dump.
    pub core_dumps: u64,
    /// Processes whose end is not known.
    pub unknown: u64,
    /// Those that failed or were killed, by how and by program, the worst first: signals of a
    /// fault, SIGKILL, other signals, exit statuses; those of a test that said no (`grep`) are last.
    pub by_program: Vec<ProgramEnd>,
}

/// Processes that ran the same program and ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramEnd {
    /// What they ran last.
    pub program: String,
    /// How they ended.
    pub outcome: Outcome,
    /// The same in words: "SIGSEGV", "exit 1".
    pub how: String,
    /// How many.
    pub processes: u64,
    /// How many of them left a core dump.
    pub core_dumps: u64,
    /// The pid of the first that ended so.
    pub example_pid: i32,
    /// What started it; empty where that is not of the recording.
    pub example_parent: String,
}

impl Ends {
    /// Whether any process failed or was killed.
    pub fn any_abnormal(&self) -> bool {
        self.failed > 0 || self.signalled > 0
    }
}

impl Outcome {
    /// In a word or two: "exit 1", "SIGSEGV".
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

/// The name of a signal; "signal 40" where it has none.
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
