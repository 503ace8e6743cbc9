//! Benchmarks of proctrace: `cargo xtask bench overhead` and others.

mod analyze;
mod overhead;
mod stats;

use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum BenchChore {
    /// Time and memory of check, report and dump, and how they grow with the trace.
    Analyze(analyze::AnalyzeArgs),
    /// What the hooks alone cost, with programs that do nothing, and what each program takes.
    Floor(overhead::FloorArgs),
    /// Run payloads bare and under each tracer, in turn: time, memory, output, completeness.
    Overhead(overhead::OverheadArgs),
    /// What the tracer by the kernel's own means is made of: it is run by `overhead`.
    #[command(hide = true)]
    RawFtrace(overhead::RawFtraceArgs),
}

pub(crate) fn run(chore: &BenchChore) -> Result<()> {
    match chore {
        BenchChore::Analyze(args) => analyze::run(args),
        BenchChore::Floor(args) => overhead::floor(args),
        BenchChore::Overhead(args) => overhead::run(args),
        BenchChore::RawFtrace(args) => overhead::raw_ftrace(args),
    }
}
