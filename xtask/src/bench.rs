//! `cargo xtask bench`: the benchmarks, a program of its own, so that no other task waits until it is built.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use anyhow::{Error, Result};
use xtask::run::cargo;

/// Benchmark to run, and its options.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the benchmark, in the directory in which this was called.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let mut cargo = cargo();
    cargo.current_dir(std::env::current_dir()?);
    cargo.args(["run", "--quiet", "--release", "--package", "proctrace-bench", "--"]);
    Err(Error::new(cargo.args(&args.arguments).exec()).context("cannot run cargo"))
}
