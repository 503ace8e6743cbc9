//! Benchmarks of proctrace: `cargo xtask bench overhead` and others.

#![expect(clippy::print_stdout, reason = "it is for people to watch")]

mod analyze;
mod fleet;
mod overhead;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// Without it cargo would compile dependencies of this program twice.
use proctrace_one_build as _;

/// Measure the overhead of recording, compared with bare runs and other tracers.
#[derive(Parser)]
#[command(bin_name = "xtask bench", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    chore: BenchChore,
}

/// Benchmark to run.
#[derive(Subcommand)]
enum BenchChore {
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

fn main() -> ExitCode {
    xtask::ending::ended(match Cli::parse().chore {
        BenchChore::Analyze(args) => analyze::run(&args),
        BenchChore::Fleet(args) => fleet::run(&args),
        BenchChore::Floor(args) => overhead::floor(&args),
        BenchChore::Overhead(args) => overhead::run(&args),
        BenchChore::RawFtrace(args) => overhead::raw_ftrace(&args),
    })
}
