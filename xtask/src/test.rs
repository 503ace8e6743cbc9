//! Runs every test with real eBPF, which requires root.

use anyhow::Result;

use crate::run::{cargo, is_root, run as execute};
use crate::{setup, verifier};

/// Builds everything and runs every test.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    let mut command = cargo();
    command.args(["test", "--release", "--workspace"]).args(arguments);
    if !is_root() {
        // cargo builds as our own user, and only the test programs run as root.
        let runner = "sudo --preserve-env";
        command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    }
    execute(&mut command)?;
    // If single tests were selected, the verifier check is skipped.
    if arguments.is_empty() { verifier::run(false) } else { Ok(()) }
}
