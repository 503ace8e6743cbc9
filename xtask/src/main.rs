//! Development tasks of proctrace: `cargo xtask demo`, `test`, `ci`, `bench`, `book`, `soak`,
//! `bpf`, `corpus`, `dist`, `fixtures`, `fuzz`, `payloads`, `release`, `setup`, `slurm`, `web`.

#![expect(clippy::print_stdout, reason = "it is for people to watch")]

mod bench;
mod book;
mod bpf;
mod ci;
mod corpus;
mod demo;
mod dist;
mod fetched;
mod fixtures;
mod fuzz;
mod lint;
mod nextest;
mod nextflow;
mod one_build;
mod part;
mod payloads;
mod prmon;
mod release;
mod slurm;
mod soak;
mod test;
mod verifier;
mod web;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::ending::ended;
use xtask::setup;

/// Development tasks of proctrace.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install missing tools, build, record a real build and report on it.
    Demo,
    /// Install missing tools, build, and run all tests, including those with real eBPF.
    Test {
        /// Run only tests that need no rights.
        #[arg(long)]
        unprivileged: bool,
        /// Leave out the tests that need Java 17: fleets on Spark (450 MB), and Nextflow.
        #[arg(long, conflicts_with = "unprivileged")]
        no_java: bool,
        /// Arguments for `cargo nextest run`, such as names of tests: only these are run.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run all checks required before a merge: formatting, lints, dependencies, tests.
    Ci,
    /// Measure the overhead of recording, compared with bare runs and other tracers.
    Bench(bench::BenchArgs),
    /// Make the book of docs/ and of the options of every command, into target/book.
    Book(book::BookArgs),
    /// Inspect the compiled BPF programs.
    Bpf {
        #[command(subcommand)]
        chore: bpf::BpfChore,
    },
    /// Record jobs of real tools, and print what `advise` says of each (docs/advice-corpus.md).
    Corpus(corpus::CorpusArgs),
    /// Build the binaries, man pages, shell completions and units for distribution.
    Dist(dist::DistArgs),
    /// Record missing traces in fixtures/traces, which later versions must be able to read.
    Fixtures,
    /// Fuzz every parser; needs a nightly toolchain.
    Fuzz(fuzz::FuzzArgs),
    /// Prepare a payload of third-party software.
    Payloads(payloads::PayloadsArgs),
    /// Check that a release could be made of this commit, and show what it would be.
    Release(release::ReleaseArgs),
    /// Run jobs of a real Slurm, in namespaces, under the recorder of a node, and compare each row that they
    /// leave with what Slurm says; needs root.
    Slurm(slurm::SlurmArgs),
    /// Stress test: record processes, threads, failed look-ups and daemons, and compare with the
    /// declared counts.
    Soak(soak::SoakArgs),
    /// Install the tools needed to build and test.
    Setup,
    /// Bundle the script and the style of `report --html`; needs node and npm.
    Web,
}

fn main() -> ExitCode {
    ended(match Cli::parse().chore {
        Chore::Demo => demo::run(),
        Chore::Test { unprivileged: true, arguments, .. } => test::unprivileged(&arguments),
        Chore::Test { no_java, arguments, .. } => test::run(no_java, &arguments),
        Chore::Ci => ci::run(),
        Chore::Bench(args) => bench::run(&args),
        Chore::Book(args) => book::run(&args),
        Chore::Bpf { chore } => bpf::run(&chore),
        Chore::Corpus(args) => corpus::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Fixtures => fixtures::run(),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Payloads(args) => payloads::run(&args),
        Chore::Release(args) => release::run(&args),
        Chore::Slurm(args) => slurm::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Setup => setup::run(setup::EVERYTHING).and_then(|()| setup::run(setup::SPARK)),
        Chore::Web => web::run(),
    })
}
