//! Errors of the ptrace source.

use std::io;

/// The reasons why recording by ptrace is not possible.
#[derive(Debug, thiserror::Error)]
pub enum PtraceError {
    /// An option that only another source can honour.
    #[error("{0} cannot be recorded by ptrace, which follows a command from its start")]
    Unsupported(&'static str),
    /// The kernel refuses to let the tracer attach to the command.
    #[error(
        "the kernel does not allow this user to trace by ptrace ({source}).\n\
         Is it forbidden by the sysctl kernel.yama.ptrace_scope, the seccomp profile of\n\
         a container, or is proctrace being traced itself, as by strace?"
    )]
    NotPermitted {
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The tracer has ended before the payload.
    #[error("the tracer has ended before the command: was it killed?")]
    TracerEnded,
    /// Something failed.
    #[error("cannot {what}")]
    System {
        /// The step that failed, for "cannot …".
        what: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

impl PtraceError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
