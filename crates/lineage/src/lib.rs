//! The descent of processes: births, threads, ends, and ids that are used again, from the records of a recording.
//!
//! [`Birth`] says of whom a task is born, by the kernel's rules and for any [`Register`] of processes; [`ends_process`] which
//! record tells the end of a process. [`Living`] is a register of all that is alive, in memory bounded by that, to which
//! its user adds what it needs to know of a process and of a task. A register that keeps all processes
//! there were is that of the analysis.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod birth;
mod living;
mod serials;
#[cfg(test)]
mod tests;

pub use birth::{Birth, Register, ends_process};
pub use living::{Exited, Living, Process, Told};
pub use serials::Serials;
