//! The destination of records.

use std::io;
use std::time::Duration;

use proctrace_wire::Stream;

/// Receives the records of a recording, and its progress.
pub trait Sink {
    /// Stores one record.
    ///
    /// # Errors
    /// When it cannot be stored. No more records are passed then, but the command is followed to
    /// its end.
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()>;

    /// Ensures that the records stored so far survive the recorder. Called at least once a second.
    ///
    /// # Errors
    /// As [`Sink::push`].
    fn flush(&mut self) -> io::Result<()>;

    /// Called once, when all requested existing processes are traced.
    fn ready(&mut self, processes: u64) {
        let _ = processes;
    }

    /// Called at most once: the command has exited, `alive` of its descendants have not, and the
    /// recording continues for at most `grace` after the command's exit. Not called if they end
    /// within a fifth of a second, like the remaining commands of a pipeline.
    fn waiting(&mut self, alive: u64, grace: Duration) {
        let _ = (alive, grace);
    }
}
