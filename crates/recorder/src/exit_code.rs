//! The exit codes, part of the interface to scripts.

/// A subcommand failed.
pub const FAILED: u8 = 1;
/// The arguments are invalid.
pub const USAGE: u8 = 2;
/// An error for arguments that can be parsed but are invalid: if it is one of the causes, the exit
/// code is [`USAGE`].
#[derive(Debug)]
pub struct Misuse(
    /// Description of what is wrong.
    pub String,
);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// `check`: the trace is incomplete, or a consistency law is violated.
pub const UNSOUND: u8 = 3;
/// `record` itself failed; the command's own codes are passed through.
pub const RECORDING_FAILED: u8 = 125;
/// `record`: the command cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// `record`: the command does not exist.
pub const NOT_FOUND: u8 = 127;
/// `record`: the offset that a shell adds to the number of the signal that killed the command.
pub const SIGNALLED: u8 = 128;
