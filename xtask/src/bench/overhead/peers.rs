//! The programs of other projects: where they are, which version, and how to install them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{cargo, exists, run as execute, target_dir};
use crate::setup;

/// Where the first of these that is there lies: on the path, or where we installed it.
pub(super) fn first_of(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = directory().ok()?.join("bin");
    let directories: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into(), own]).collect();
    let mut candidates =
        names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    candidates.find(|program| program.is_file())
}

/// Where `cargo install` puts what no package manager has.
fn directory() -> Result<PathBuf> {
    Ok(target_dir()?.join("bench").join("peers"))
}

/// Installs what can be had. What cannot is said, and is no error: it is left out later.
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
        // So that what is built already is built no more if someone interrupts this.
        install.env("CARGO_TARGET_DIR", directory.join("build"));
        // Outside of the workspace, whose settings are not its own.
        if let Err(error) = execute(install.current_dir("/")) {
            println!("{error:#}");
        }
    }
    Ok(())
}

/// What a program says of its version.
pub(super) fn first_line(program: PathBuf, argument: &str) -> Result<String> {
    let output = Command::new(&program).arg(argument).output();
    let output = output.with_context(|| format!("{} does not run", program.display()))?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned())
}
