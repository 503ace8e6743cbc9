//! The recorder for any Linux: linked statically with musl, in an archive of its own for each architecture.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::contents;
use xtask::run::{cargo, exists, output, run as execute, target_dir};

use super::{completions, pack, texts};

const PROGRAM: &str = "proctrace-recorder";
/// The profile of cargo's that it is built with.
const PROFILE: &str = "small";

/// Architectures that it is built for, each with the C compiler that builds and links for it on a machine of another one.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64", "x86_64-linux-gnu-gcc"), ("aarch64", "aarch64-linux-gnu-gcc")];

/// Builds it for each architecture that there is a compiler for, below target/dist/static, and the archives into the
/// folder of a release.
pub(super) fn build(release: &Path) -> Result<()> {
    // Texts that the program itself writes are the same for all: the one that can run here comes first.
    let Some(native) = build_for(ARCH, None, None, release)? else { return Ok(()) };
    for (architecture, compiler) in ARCHITECTURES.iter().filter(|(name, _)| *name != ARCH) {
        build_for(architecture, Some(compiler), Some(&native), release)?;
    }
    Ok(())
}

/// True if a C compiler finds the headers of a C library: those of other architectures may come without.
fn has_headers(compiler: &str) -> bool {
    let reads = ["-include", "string.h", "-E", "-x", "c", "/dev/null"];
    output(Command::new(compiler).args(reads)).is_ok()
}

/// True if the compiler of Rust has its own library for a target.
fn has_library(triple: &str) -> bool {
    let place =
        output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
    place.is_ok_and(|place| Path::new(String::from_utf8_lossy(&place).trim()).exists())
}

/// The program, if there is a compiler for it. `writer` is one that can run here; `None` if this one can.
fn build_for(
    architecture: &str,
    compiler: Option<&str>,
    writer: Option<&Path>,
    release: &Path,
) -> Result<Option<PathBuf>> {
    let needed = compiler.unwrap_or("musl-gcc");
    let triple = format!("{architecture}-unknown-linux-musl");
    // Where Rust is a package of the distribution, its library for this target is one, too.
    if exists("rustup") {
        execute(Command::new("rustup").args(["target", "add", &triple]))?;
    }
    for (what, is_there) in
        [(needed, exists(needed) && has_headers(needed)), ("Rust for it", has_library(&triple))]
    {
        if !is_there {
            println!(
                "left out: the static recorder for {architecture}, as {what} is missing or incomplete"
            );
            return Ok(None);
        }
    }
    let mut build = cargo();
    build.args(["build", "--profile", PROFILE, "--package", PROGRAM, "--target", &triple]);
    if let Some(compiler) = compiler {
        let name = triple.replace('-', "_");
        // Where the compiler's default is to check lengths, it calls functions that only glibc has.
        build.env(format!("CFLAGS_{name}"), "-U_FORTIFY_SOURCE");
        build.env(format!("CC_{name}"), compiler);
        build.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), compiler);
    }
    execute(&mut build)?;
    let target = target_dir()?;
    let folder = target.join("dist/static").join(architecture);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove an earlier distribution")?;
    }
    for directory in ["bin", "man/man1", "completions"] {
        fs::create_dir_all(folder.join(directory)).context("cannot create a directory")?;
    }
    let binary = folder.join("bin").join(PROGRAM);
    fs::copy(target.join(&triple).join(PROFILE).join(PROGRAM), &binary)
        .context("cannot copy the static recorder")?;
    let writer = writer.unwrap_or(&binary);
    execute(Command::new(writer).arg("man").arg(folder.join("man/man1")))?;
    completions(writer, PROGRAM, &folder.join("completions"))?;
    texts(&folder)?;
    contents::write(&[PROGRAM], &triple, contents::time()?, &folder)?;
    let parts = ["bin", "completions", "man"];
    let archive = format!("{PROGRAM}-{architecture}-linux-static.tar.gz");
    pack(&folder, &parts, &archive, release)?;
    Ok(Some(binary))
}
