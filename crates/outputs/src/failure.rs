//! Why a file could not be written, where what writes it says only that it could not.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// The system's error of a write, for libraries of file formats, which do not pass it on.
#[derive(Debug, Clone, Default)]
pub struct Failure(Rc<Cell<Option<i32>>>);

impl Failure {
    /// An output whose errors are kept.
    pub fn of<W: Write>(&self, out: W) -> Watched<W> {
        Watched { out, failure: self.clone() }
    }

    /// Takes the last error.
    pub fn take(&self) -> Option<io::Error> {
        self.0.take().map(io::Error::from_raw_os_error)
    }
}

/// An output whose errors are kept.
#[derive(Debug)]
pub struct Watched<W> {
    out: W,
    failure: Failure,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|error| self.failure.0.set(error.raw_os_error()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
