//! Every test, with real eBPF: as root, because that is what eBPF needs.

use anyhow::Result;

use crate::run::{cargo, is_root, run as execute};
use crate::{setup, verifier};

/// Builds everything and runs every test.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    let mut command = cargo();
    command.args(["test", "--release", "--workspace"]).args(arguments);
    if !is_root() {
        // cargo builds as us, and only the test programs run as root.
        let runner = "sudo --preserve-env";
        command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    }
    execute(&mut command)?;
    // Of single tests only those were asked for.
    if arguments.is_empty() { verifier::run(false) } else { Ok(()) }
}
