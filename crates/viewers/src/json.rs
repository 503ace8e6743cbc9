//! JSON that is written piece by piece.

use std::io::{self, Write};

use proctrace_report::escape;
use serde::Serialize;

/// Writes a value. Characters that would be active where the file is shown are escaped.
pub(crate) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    out.write_all(escape::json(&text).as_bytes())
}

/// An array of values, one per line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) written: u64,
}

impl Lines {
    /// Writes the next value.
    pub(crate) fn push(&mut self, out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
        out.write_all(if self.written == 0 { b"\n" } else { b",\n" })?;
        self.written += 1;
        write(out, value)
    }

    /// The same without line feeds.
    pub(crate) fn push_inline(
        &mut self,
        out: &mut impl Write,
        value: &impl Serialize,
    ) -> io::Result<()> {
        out.write_all(if self.written == 0 { b"" } else { b"," })?;
        self.written += 1;
        write(out, value)
    }
}

/// Nanoseconds as the microseconds of Trace Event JSON.
pub(crate) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
