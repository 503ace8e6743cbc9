//! Compilation of the BPF programs, and what tells whether a compiled object is that of the sources; part of the
//! build script of crates/probe and of xtask.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

/// The programs, each a source bpf/NAME.c and an object NAME.o.
pub(crate) const NAMES: [&str; 2] = ["proctrace.bpf", "who.bpf"];

const FLAGS: [&str; 7] = ["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"];

/// The sources that the objects depend on, a line each: CRC-32, bytes, name.
///
/// # Errors
///
/// A file cannot be read.
pub(crate) fn sources(bpf: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(bpf)? {
        let path = entry?.path();
        let is_source =
            path.extension().is_some_and(|extension| extension == "c" || extension == "h");
        // It describes the records for a test, and is no program.
        if is_source && !path.ends_with("layout.bpf.c") {
            let text = fs::read(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push((name, crc32fast::hash(&text), text.len()));
        }
    }
    lines.sort();
    Ok(lines.iter().map(|(name, crc, bytes)| format!("{crc:08x} {bytes:6} {name}\n")).collect())
}

/// Name or path of the compiler.
pub(crate) fn clang() -> std::ffi::OsString {
    env::var_os("CLANG").unwrap_or_else(|| "clang".into())
}

/// Compiles a program. The object does not depend on where the sources lie.
///
/// # Errors
///
/// The compiler cannot be run, or refuses the source.
pub(crate) fn compile(
    bpf: &Path,
    name: &str,
    architecture: &str,
    object: &Path,
) -> Result<(), String> {
    let status = Command::new(clang())
        .args(FLAGS)
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg(format!("-fdebug-prefix-map={}=bpf", bpf.display()))
        .arg("-c")
        .arg(format!("{name}.c"))
        .arg("-o")
        .arg(object)
        .current_dir(bpf)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("clang could not compile bpf/{name}.c")),
        Err(error) => Err(format!("cannot run {}: {error}", clang().display())),
    }
}
