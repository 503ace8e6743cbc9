//! A recording that is under way: its state, and a line about it.
//!
//! [`View`] takes the blocks of a trace as they come, and keeps what is alive, sums by program and
//! by directory, and rates: its memory depends on the number of live tasks, not on the length of
//! the recording. Nothing here reads a file, a clock or a terminal.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(test)]
extern crate self as proctrace_live;

mod progress;
mod state;

pub use self::progress::{Progress, Status, cpu_time, cpus, progress_line};
pub use self::state::{
    ByFile, Classify, Directories, Divided, History, Life, Losses, Process, Program, ProgramName,
    Programs, Recent, Second, Step, StepName, Steps, Totals, View,
};
