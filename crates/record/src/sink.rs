//! Where records go.

use std::io;
use std::time::Duration;

use proctrace_wire::Stream;

/// Takes the records of a recording, and hears how it goes.
pub trait Sink {
    /// Takes one record.
    ///
    /// # Errors
    /// When it cannot be kept. No more records are handed over then, but the command is followed to
    /// its end.
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()>;

    /// Makes sure that what was taken survives the recorder. Called at least once a second.
    ///
    /// # Errors
    /// As [`Sink::push`].
    fn flush(&mut self) -> io::Result<()>;

    /// Called once, when everyone who was there before and was asked for is followed.
    fn ready(&mut self, processes: u64) {
        let _ = processes;
    }

    /// Called at most once: the command has exited, `alive` tasks that it left behind have not, and the
    /// recording goes on for at most `grace` after the command's exit. Tasks that end within a
    /// fifth of a second, such as the rest of a pipeline, are not worth a word.
    fn waiting(&mut self, alive: u64, grace: Duration) {
        let _ = (alive, grace);
    }
}
