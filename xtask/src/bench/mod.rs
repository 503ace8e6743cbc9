//! Benchmarks of proctrace: `cargo xtask bench overhead` and others.

mod analyze;
mod fleet;
mod overhead;

use anyhow::Result;
use clap::Subcommand;

/// Benchmark to run.
#[derive(Subcommand)]
pub(crate) enum BenchChore {
    /// Measure time and memory of check, report and dump, and their growth with the size of the trace.
    Analyze(analyze::AnalyzeArgs),
    /// Measure size and questions of a fleet of synthetic jobs, by engine and number of files.
    Fleet(fleet::FleetArgs),
    /// Measure the cost of the hooks alone, with empty programs, and the run time of each program.
    Floor(overhead::FloorArgs),
    /// Run payloads bare and under each tracer, alternating: time, memory, output, completeness.
    Overhead(overhead::OverheadArgs),
    /// The raw ftrace reader, started by `overhead`.
    #[command(hide = true)]
    RawFtrace(overhead::RawFtraceArgs),
}

pub(crate) fn run(chore: &BenchChore) -> Result<()> {
    match chore {
        BenchChore::Analyze(args) => analyze::run(args),
        BenchChore::Fleet(args) => fleet::run(args),
        BenchChore::Floor(args) => overhead::floor(args),
        BenchChore::Overhead(args) => overhead::run(args),
        BenchChore::RawFtrace(args) => overhead::raw_ftrace(args),
    }
}
