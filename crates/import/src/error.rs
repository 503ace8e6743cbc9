//! Errors of an import as a whole.

use std::io;

/// Errors of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A log cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The log.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A record cannot be written.
    #[error("cannot write the records")]
    Write(#[source] io::Error),
    /// Some of several logs have no times.
    #[error("{name} has no times and other logs have: they have no order; run strace with -ttt")]
    NoTimesToMerge {
        /// The log.
        name: String,
    },
    /// Several logs whose times are differences cannot be merged.
    #[error(
        "{name}: times relative to the line before (-r) order only one log; run strace with -ttt"
    )]
    Relative {
        /// The log.
        name: String,
    },
    /// Arguments are addresses.
    #[error(
        "{name}, line {line}: the arguments are addresses\n  (strace -e raw=…, -e verbose=…): run strace \
         without that option"
    )]
    Raw {
        /// The log.
        name: String,
        /// The line, from 1.
        line: u64,
    },
    /// Calls are not in order.
    #[error(
        "{name}, line {line}: a task is born after its own calls,\n  as strace -z, -Z and -e status=… \
         write it: run strace without these"
    )]
    NoOrder {
        /// The log.
        name: String,
        /// The line, from 1.
        line: u64,
    },
    /// Nothing in it was understood.
    #[error("{name} is not a log of {tool}")]
    NotALog {
        /// The log.
        name: String,
        /// The tool.
        tool: &'static str,
    },
    /// A row that is wrong.
    #[error("{name}, line {line}: {why}")]
    Row {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// Description of the error.
        why: String,
    },
}
