//! Errors of a broker and of its client.

use std::io;
use std::path::PathBuf;

/// Errors of a broker and of its client.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Nothing listens there.
    #[error("no broker listens at {}", path.display())]
    Absent {
        /// The socket.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The broker's reason.
    #[error("the broker refuses: {0}")]
    Refused(String),
    /// It is not a broker of this version, or it has ended.
    #[error("the broker at {} answered {what}", path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// Description of the broker's answer.
        what: String,
    },
    /// A system call failed.
    #[error("cannot {what}")]
    System {
        /// The step that failed, for "cannot …".
        what: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The environment in which the broker was started.
    #[error("{0}")]
    Unfit(String),
    /// The programs cannot be loaded.
    #[error(transparent)]
    Probe(#[from] proctrace_probe::ProbeError),
}

impl BrokerError {
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }
}
