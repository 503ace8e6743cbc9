//! End of a process, decoded from its wait(2) status.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Outcome {
    /// Decodes the wait(2) status of a process that has ended: `status` of an exit record.
    #[inline]
    pub fn of_status(status: u32) -> Self {
        match status & 0x7f {
            0 => Self::Code((status >> 8 & 0xff) as i32),
            signal => Self::Signal(signal as i32),
        }
    }

    /// The exit code; `None` if a signal killed it.
    #[inline]
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }

    /// The signal that killed it; `None` if it exited.
    #[inline]
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }

    /// A short description: "exit 1", "SIGSEGV".
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Code(code) => Cow::Owned(format!("exit {code}")),
            Self::Signal(signal) => signal_name(signal),
        }
    }
}

impl fmt::Display for Outcome {
    /// What became of it, as the rest of a sentence: "exited with 1", "was killed by signal 11".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// True if a process with this wait(2) status left a core dump.
#[inline]
pub fn dumped_core(status: u32) -> bool {
    status & 0x80 != 0
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
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    /// Every status of a process that has ended, as the standard library reads it.
    #[test]
    fn statuses_are_read_as_others_read_them() {
        for status in (0..=u16::MAX).filter(|status| status & 0x7f != 0x7f) {
            let expected = ExitStatus::from_raw(status.into());
            // A signal leaves the byte of the code at 0.
            if expected.signal().is_some() && status > 0xff {
                continue;
            }
            let outcome = Outcome::of_status(status.into());
            assert_eq!(outcome.code(), expected.code(), "{status:#x}");
            assert_eq!(outcome.signal(), expected.signal(), "{status:#x}");
            assert_eq!(dumped_core(status.into()), status & 1 << 7 != 0, "{status:#x}");
            if expected.signal().is_some() {
                assert_eq!(dumped_core(status.into()), expected.core_dumped(), "{status:#x}");
            }
        }
        assert_eq!(Outcome::Code(1).to_string(), "exited with 1");
        assert_eq!(Outcome::Signal(9).to_string(), "was killed by signal 9");
    }

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
        assert_eq!(Outcome::Code(7).name(), "exit 7");
        assert_eq!(Outcome::Signal(6).name(), "SIGABRT");
    }
}
