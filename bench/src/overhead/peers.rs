//! Third-party programs: where they are installed, their versions, and how to install them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::run::{cargo, exists, run as execute, target_dir};
use xtask::setup;

/// The first of these programs that exists, on PATH or in our own directory.
pub(super) fn first_of(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = directory().ok()?.join("bin");
    let directories: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into(), own]).collect();
    let mut candidates =
        names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    candidates.find(|program| program.is_file())
}

/// Directory in which `cargo install` puts programs that no package manager has.
fn directory() -> Result<PathBuf> {
    Ok(target_dir()?.join("bench").join("peers"))
}

/// Installs what is available. Failures are reported but are not errors: missing tools are skipped
/// later.
pub(super) fn install() -> Result<()> {
    for tool in setup::PEERS {
        if let Err(error) = setup::run(std::slice::from_ref(tool)) {
            println!("{error:#}");
        }
    }
    let directory = directory()?;
    if !exists("tracexec") && !directory.join("bin/tracexec").exists() {
        let mut install = cargo();
        install.args(["install", "--locked", "--root"]).arg(&directory).arg("tracexec");
        // So that an interrupted build can be resumed.
        install.env("CARGO_TARGET_DIR", directory.join("build"));
        // Outside the workspace, whose settings do not apply to it.
        if let Err(error) = execute(install.current_dir("/")) {
            println!("{error:#}");
        }
    }
    Ok(())
}

/// The version output of a program.
pub(super) fn first_line(program: PathBuf, argument: &str) -> Result<String> {
    let output = Command::new(&program).arg(argument).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned())
}
