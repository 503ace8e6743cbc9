//! The script and the style of `proctrace report --html`: bundles them from their sources with npm's packages.

use std::process::Command;

use anyhow::Result;
use xtask::run::{root, run as execute};
use xtask::setup;

/// Installs the pinned packages, checks the types and writes crates/web/app/dist.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::WEB)?;
    let app = root().join("crates/web/app");
    for arguments in [&["ci"][..], &["run", "check"], &["run", "build"]] {
        execute(Command::new("npm").current_dir(&app).args(arguments))?;
    }
    println!("written to {}", app.join("dist").display());
    Ok(())
}
