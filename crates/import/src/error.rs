//! What can go wrong with an import as a whole.

use std::io;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A log cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The log.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A record cannot be written.
    #[error("cannot write the records")]
    Write(#[source] io::Error),
    /// The log has no times.
    #[error("{name}: the lines have no times; run strace with -ttt")]
    NoTimes {
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
        "{name}, line {line}: the arguments are addresses (strace -e raw=…, -e verbose=…): run strace \
         without that option"
    )]
    Raw {
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
        /// What is wrong.
        why: String,
    },
}
