//! Conversion of the items of a timeline to the files of other viewers and tools.
//!
//! A [`Viewer`] takes one item at a time and writes what it can at once, so the memory it needs does
//! not grow with arguments and samples. What is not known is left out of the files.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod chrome;
mod compile;
mod folded;
mod json;
mod otlp;
mod perfetto;
mod proto;
mod speedscope;
mod stacks;
mod text;

use std::io::{self, Write};

use proctrace_findings::{Timeline, TimelineItem, TimelineParts};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A Perfetto trace: protobuf.
    Perfetto,
    /// Trace Event JSON: chrome://tracing, Perfetto, speedscope.
    Chrome,
    /// Chains of programs, one per line, with a number.
    Folded(Weight),
    /// The file format of speedscope: JSON.
    Speedscope,
    /// A compilation database: JSON.
    CompileCommands,
    /// Spans of OpenTelemetry: OTLP as lines of JSON.
    Otlp,
}

/// The number of a chain of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// CPU time, in microseconds.
    Cpu,
    /// Lifetimes, in microseconds.
    Wall,
    /// Number of processes.
    Processes,
}

/// Summary of what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of the things that the format consists of.
    pub items: u64,
    /// Their names, for one and for several.
    pub names: (&'static str, &'static str),
    /// Notes on what is not there, and why.
    pub notes: Vec<String>,
}

/// A file being written.
pub trait Viewer {
    /// Takes the next item.
    ///
    /// # Errors
    /// If it cannot be written.
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()>;

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(self: Box<Self>) -> io::Result<Written>;
}

impl Format {
    /// The items that it needs.
    pub fn parts(self) -> TimelineParts {
        let none = TimelineParts::default();
        match self {
            Self::Perfetto | Self::Chrome => {
                TimelineParts { runs: true, path: true, counters: true, phases: true, ..none }
            }
            Self::Folded(_) => TimelineParts { stacks: true, ..none },
            Self::Speedscope => TimelineParts { stacks: true, path: true, phases: true, ..none },
            Self::CompileCommands => TimelineParts { runs: true, ..none },
            Self::Otlp => TimelineParts { runs: true, phases: true, ..none },
        }
    }

    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin<'a>(
        self,
        timeline: &Timeline,
        out: impl Write + 'a,
    ) -> io::Result<Box<dyn Viewer + 'a>> {
        Ok(match self {
            Self::Perfetto => Box::new(perfetto::Perfetto::begin(timeline, out)?),
            Self::Chrome => Box::new(chrome::Chrome::begin(timeline, out)?),
            Self::Folded(weight) => Box::new(folded::Folded::begin(weight, out)),
            Self::Speedscope => Box::new(speedscope::Speedscope::begin(timeline, out)?),
            Self::CompileCommands => Box::new(compile::CompileCommands::begin(out)?),
            Self::Otlp => Box::new(otlp::Otlp::begin(timeline, out)?),
        })
    }
}
