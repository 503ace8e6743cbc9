//! What development tasks have in common, those of this crate and the benchmarks in ../bench: tools to install, programs
//! to run, and how a task ends.

#![expect(clippy::print_stdout, reason = "it is for people to watch")]

pub mod contents;
pub mod digest;
pub mod ending;
#[path = "../../bpf/objects.rs"]
mod objects;
pub mod prebuilt;
pub mod python;
pub mod run;
pub mod setup;
pub mod statement;
