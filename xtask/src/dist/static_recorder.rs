//! The recorder for any Linux: linked statically with musl, in an archive of its own.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::contents;
use xtask::run::{cargo, exists, run as execute, target_dir};

use super::{completions, pack, texts};

const PROGRAM: &str = "proctrace-recorder";

/// Builds it into target/dist/static, and its archive into the folder of a release.
pub(super) fn build(release: &Path) -> Result<()> {
    if !exists("musl-gcc") {
        println!("left out: the static recorder, as there is no musl-gcc");
        return Ok(());
    }
    let triple = format!("{ARCH}-unknown-linux-musl");
    // Where Rust is a package of the distribution, its library for this target is one, too.
    if exists("rustup") {
        execute(Command::new("rustup").args(["target", "add", &triple]))?;
    }
    let build = ["build", "--profile", "dist", "--package", PROGRAM, "--target", &triple];
    execute(cargo().args(build))?;
    let target = target_dir()?;
    let folder = target.join("dist/static");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove an earlier distribution")?;
    }
    for directory in ["bin", "man/man1", "completions"] {
        fs::create_dir_all(folder.join(directory)).context("cannot create a directory")?;
    }
    let binary = folder.join("bin").join(PROGRAM);
    fs::copy(target.join(&triple).join("dist").join(PROGRAM), &binary)
        .context("cannot copy the static recorder")?;
    execute(Command::new(&binary).arg("man").arg(folder.join("man/man1")))?;
    completions(&binary, PROGRAM, &folder.join("completions"))?;
    texts(&folder)?;
    contents::write(&[PROGRAM], &triple, contents::time()?, &folder)?;
    let parts = ["bin", "completions", "man"];
    pack(&folder, &parts, &format!("{PROGRAM}-{ARCH}-linux-static.tar.gz"), release)
}
