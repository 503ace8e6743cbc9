//! Development tasks of proctrace: `cargo xtask demo`, `test`, `ci`, `bench`, `soak`, `bpf`,
//! `dist`, `fixtures`, `fuzz`, `payloads`, `setup`.

#![expect(clippy::print_stdout, reason = "it is for people to watch")]

mod bench;
mod bpf;
mod ci;
mod demo;
mod dist;
mod fixtures;
mod fuzz;
mod payloads;
mod python;
mod run;
mod setup;
mod soak;
mod test;
mod unprivileged;
mod verifier;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The chores of proctrace.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what is missing, build, record a real build and report on it.
    Demo,
    /// Install what is missing, build, and run every test, real eBPF included.
    Test {
        /// Only the tests that need no privileges: less than a minute after the build.
        #[arg(long)]
        unprivileged: bool,
        /// Handed to `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// What must pass before a change is merged: formatting, lints, dependencies, tests.
    Ci,
    /// Measure what recording costs, side by side with not recording and with other tracers.
    Bench {
        #[command(subcommand)]
        chore: bench::BenchChore,
    },
    /// Look at the compiled BPF programs.
    Bpf {
        #[command(subcommand)]
        chore: bpf::BpfChore,
    },
    /// Build the binary, its man pages and completions for others to install.
    Dist,
    /// Record the trace that is committed for later versions to read.
    Fixtures,
    /// Try inputs on every parser that nobody would write; needs a nightly toolchain.
    Fuzz(fuzz::FuzzArgs),
    /// Make ready a payload of other people's software.
    Payloads(payloads::PayloadsArgs),
    /// Record a storm of processes, threads, misses and daemons, and hold it against what they declare.
    Soak(soak::SoakArgs),
    /// Install the tools that building and testing needs.
    Setup,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Demo => demo::run(),
        Chore::Test { unprivileged: true, arguments } => unprivileged::run(&arguments),
        Chore::Test { unprivileged: false, arguments } => test::run(&arguments),
        Chore::Ci => ci::run(),
        Chore::Bench { chore } => bench::run(&chore),
        Chore::Bpf { chore } => bpf::run(&chore),
        Chore::Dist => dist::run(),
        Chore::Fixtures => fixtures::run(),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Payloads(args) => payloads::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Setup => setup::run(setup::EVERYTHING),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            // A test needs to distinguish failures from unavailable prerequisites.
            if error.is::<payloads::Unavailable>() {
                ExitCode::from(payloads::UNAVAILABLE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
