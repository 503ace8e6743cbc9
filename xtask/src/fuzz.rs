//! Fuzzing of every parser with libFuzzer, to find inputs that nobody would write.
//!
//! The targets are in fuzz/, a separate workspace, because sanitizers need a nightly toolchain.
//! Their checks are in fuzz/harness, which ordinary tests run on fuzz/regressions as well. Corpora
//! are generated from files committed for other purposes, and stay in the target directory.

mod run;
mod seeds;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;
use xtask::ending::Unavailable;
use xtask::run::{exists, root, run as execute, target_dir};

use self::run::{Done, fuzz};

/// A parser, and the maximum input length in bytes.
struct Target {
    name: &'static str,
    most_bytes: u32,
}

const TARGETS: [Target; 9] = [
    Target { name: "trace-reader", most_bytes: 64 << 10 },
    Target { name: "record-decoder", most_bytes: 8 << 10 },
    Target { name: "replay", most_bytes: 32 << 10 },
    Target { name: "import", most_bytes: 16 << 10 },
    Target { name: "broker", most_bytes: 8 << 10 },
    Target { name: "rights", most_bytes: 512 },
    Target { name: "rules", most_bytes: 8 << 10 },
    Target { name: "budget", most_bytes: 8 << 10 },
    Target { name: "escapes", most_bytes: 512 },
];

/// The version to install if cargo-fuzz is missing.
const CARGO_FUZZ: &str = "cargo-fuzz@0.13.2";

/// Targets and duration.
#[derive(Debug, Args)]
pub(crate) struct FuzzArgs {
    /// Run time of each target.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u32,

    /// Targets to run; all by default.
    #[arg(value_name = "TARGET", value_parser = TARGETS.map(|target| target.name))]
    targets: Vec<String>,
}

/// Builds and runs the targets, and keeps failing inputs.
pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let toolchain = toolchain()?;
    let place = target_dir()?.join("fuzz");
    let mut build = toolchain.command();
    build.args(["fuzz", "build", "--fuzz-dir", "fuzz", "--target-dir"]).arg(&place);
    execute(&mut build)?;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let wanted =
        |target: &&Target| args.targets.is_empty() || args.targets.iter().any(|t| t == target.name);
    let mut all = Vec::new();
    for target in TARGETS.iter().filter(wanted) {
        let program = place.join(&triple).join("release").join(target.name);
        let corpus = place.join("corpus").join(target.name);
        seeds::write(target.name, &corpus)?;
        all.push(fuzz(target, &program, &corpus, args.seconds)?);
    }
    println!("\n{}", Done::heading());
    all.iter().for_each(|done| println!("{done}"));
    let failed: Vec<&str> =
        all.iter().filter(|done| done.crash.is_some()).map(|done| done.target).collect();
    if !failed.is_empty() {
        bail!(
            "{} failed; the failing inputs are now in fuzz/regressions, where the tests \
             regressions_do_not_crash run them",
            failed.join(", ")
        );
    }
    Ok(())
}

/// The directory of a target's regression inputs, which tests run again.
fn regressions(target: &str) -> PathBuf {
    root().join("fuzz/regressions").join(target)
}

/// Command that invokes cargo of a nightly toolchain.
struct Toolchain(&'static [&'static str]);

impl Toolchain {
    fn command(&self) -> Command {
        let mut command = plain(self.0[0]);
        command.args(&self.0[1..]);
        command
    }

    fn says(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command().args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }
}

/// A nightly toolchain with cargo-fuzz; an [`Unavailable`] with instructions if there is none.
fn toolchain() -> Result<Toolchain> {
    let candidates = [Toolchain(&["rustup", "run", "nightly", "cargo"]), Toolchain(&["cargo"])];
    let nightly = |call: &Toolchain| {
        call.says(&["--version"]).is_some_and(|version| version.contains("nightly"))
    };
    let Some(toolchain) = candidates.into_iter().find(nightly) else {
        return Err(Unavailable::new(
            "fuzzing needs a nightly toolchain for its sanitizers, and none is installed: \
             `rustup toolchain install nightly --profile minimal` installs one",
        )
        .into());
    };
    if !exists("c++") {
        return Err(Unavailable::new(
            "fuzzing needs a C++ compiler for libFuzzer, and c++ is not installed",
        )
        .into());
    }
    if toolchain.says(&["fuzz", "--version"]).is_none() {
        execute(toolchain.command().args(["install", "--locked", "--quiet", CARGO_FUZZ]))?;
    }
    Ok(toolchain)
}

/// A program that selects its own toolchain: cargo has set ours in its environment.
fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.current_dir(root());
    command
}

/// True if a directory is empty or does not exist.
fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}
