//! A recording that is under way: its state, and how that looks in a terminal.
//!
//! [`View`] takes the blocks of a trace as they come, and keeps what is alive, sums by program and
//! by directory, and rates: its memory depends on the number of live tasks, not on the length of
//! the recording. [`Screen`] is what the user has chosen to see; [`Screen::draw`] draws both into a
//! buffer of ratatui. Nothing here reads a file, a clock or a terminal.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod screen;
mod state;

pub use screen::{Key, Screen, Status, progress_line};
pub use state::{
    ByFile, Classify, Directories, Divided, History, Life, Losses, Process, Program, ProgramName,
    Programs, Recent, Second, Step, StepName, Steps, Totals, View,
};
