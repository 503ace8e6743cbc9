//! The checks that must pass before a change is merged.

use anyhow::Result;
use xtask::run::{cargo, exists, run as execute, target_dir};
use xtask::setup;

use crate::test;

/// Dependencies, documentation, interleavings, then what [`test::run`] runs: formatting, lints, features, tests.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    if !exists("cargo-deny") {
        execute(cargo().args(["install", "--locked", "--quiet", "cargo-deny"]))?;
    }
    // Advisories come from a repository that is unreachable in a closed network; .github/workflows/advisories.yml
    // looks for them each day.
    execute(cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    execute(
        cargo()
            .args(["doc", "--release", "--workspace", "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    // Every interleaving of tracer and recorder: a few seconds, and at first a minute and a half to build. In a target
    // directory of its own, as flags build everything anew.
    execute(
        cargo()
            .args(["test", "--package", "proctrace-ptrace", "--lib", "--target-dir"])
            .arg(target_dir()?.join("loom"))
            .arg("ring::")
            .env("RUSTFLAGS", "--cfg loom"),
    )?;
    test::run(false, &[])
}
