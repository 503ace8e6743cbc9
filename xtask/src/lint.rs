//! Formatting and lints of the whole workspace.

use std::process::Stdio;

use anyhow::Result;
use xtask::contents::rustc_minor;
use xtask::run::{cargo, exists, run as execute};

/// Newest minor version of Rust 1 whose lints the code was written with: those of later ones warn.
const NEWEST: u32 = 95;

/// True if Rust has its formatter and its lints here; installs them where rustup does.
pub(crate) fn are_there() -> bool {
    let is_there = |tool| {
        let mut version = cargo();
        version.args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    let are_there = || is_there("fmt") && is_there("clippy");
    if !are_there() && exists("rustup") {
        let _ = execute(std::process::Command::new("rustup").args([
            "component",
            "add",
            "rustfmt",
            "clippy",
        ]));
    }
    are_there()
}

/// Fails if something is not formatted, or if clippy warns of anything.
pub(crate) fn run() -> Result<()> {
    execute(cargo().args(["fmt", "--all", "--check"]))?;
    let mut clippy = cargo();
    clippy.args(["clippy", "--release", "--workspace", "--all-targets", "--quiet"]);
    if rustc_minor()? <= NEWEST {
        clippy.args(["--", "--deny", "warnings"]);
    }
    execute(&mut clippy)
}
