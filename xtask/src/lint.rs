//! Formatting and lints of the whole workspace.

use anyhow::Result;
use xtask::run::{cargo, run as execute};

/// Fails if something is not formatted, or if clippy warns of anything.
pub(crate) fn run() -> Result<()> {
    execute(cargo().args(["fmt", "--all", "--check"]))?;
    let of = ["clippy", "--release", "--workspace", "--all-targets", "--quiet"];
    execute(cargo().args(of).args(["--", "--deny", "warnings"]))
}
