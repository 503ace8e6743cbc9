//! The compiled BPF programs in bpf/prebuilt, so that only those who change bpf/ need clang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result, ensure};

use crate::objects::{NAMES, clang, compile, sources};
use crate::run::{output, root, target_dir};

/// The architectures by their name in libbpf's headers.
const ARCHITECTURES: [&str; 2] = ["x86", "arm64"];

/// Options of zstd for the smallest files.
const SMALLEST: [&str; 3] = ["--quiet", "--ultra", "-22"];

fn directory() -> PathBuf {
    root().join("bpf/prebuilt")
}

/// The path of an object below bpf/prebuilt.
fn packed(architecture: &str, name: &str) -> PathBuf {
    Path::new(architecture).join(format!("{name}.o.zst"))
}

/// The versions of the tools, on which the bytes of objects depend.
fn tools() -> Result<String> {
    let version = |command: &mut Command| -> Result<String> {
        let said = output(command)?;
        let said = String::from_utf8_lossy(&said);
        Ok(said.lines().next().unwrap_or_default().to_owned())
    };
    let clang = version(Command::new(clang()).arg("--version"))?;
    Ok(format!("{clang}\n{}\n", version(bpftool().arg("version"))?))
}

fn bpftool() -> Command {
    let mut bpftool = Command::new("bpftool");
    bpftool.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    bpftool
}

/// Compiles bpf/NAME.c for this machine.
///
/// # Errors
///
/// The compiler cannot be run, or refuses the source.
pub fn compile_here(name: &str, object: &Path) -> Result<()> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86" };
    compile(&root().join("bpf"), name, architecture, object).map_err(Error::msg)
}

/// Compiles a program, and drops what the loader has no use for: DWARF, two thirds of it. Returns its file and its bytes.
fn object(architecture: &str, name: &str) -> Result<(PathBuf, Vec<u8>)> {
    let scratch = target_dir()?.join("bpf").join(architecture);
    fs::create_dir_all(&scratch).context("cannot create a directory")?;
    let (whole, stripped) = (scratch.join(format!("{name}.whole")), scratch.join(name));
    compile(&root().join("bpf"), name, architecture, &whole).map_err(Error::msg)?;
    output(bpftool().args(["gen", "object"]).arg(&stripped).arg(&whole))?;
    let bytes = fs::read(&stripped).context("cannot read the object")?;
    Ok((stripped, bytes))
}

/// Compiles all programs for all architectures.
///
/// # Errors
///
/// A tool is missing or fails, or a file cannot be written.
pub fn renew() -> Result<()> {
    for architecture in ARCHITECTURES {
        fs::create_dir_all(directory().join(architecture)).context("cannot create a directory")?;
        for name in NAMES {
            let (file, bytes) = object(architecture, name)?;
            let small = output(Command::new("zstd").args(SMALLEST).arg("--stdout").arg(file))?;
            println!("{architecture} {name}: {} bytes, {} compressed", bytes.len(), small.len());
            fs::write(directory().join(packed(architecture, name)), small)
                .context("cannot write an object")?;
        }
    }
    fs::write(directory().join("tools.txt"), tools()?).context("cannot write the versions")?;
    fs::write(directory().join("sources.txt"), sources(&root().join("bpf"))?)
        .context("cannot write the list of sources")
}

/// Checks that the objects are what the sources give. Returns false where their bytes could not be compared, because other
/// versions of the tools made them.
///
/// # Errors
///
/// They are not, or that cannot be told.
pub fn check() -> Result<bool> {
    let renew = "run `cargo xtask bpf build` and commit bpf/prebuilt";
    let listed = fs::read_to_string(directory().join("sources.txt")).unwrap_or_default();
    ensure!(listed == sources(&root().join("bpf"))?, "bpf/ has changed: {renew}");
    let made_by = fs::read_to_string(directory().join("tools.txt")).unwrap_or_default();
    let is_comparable = made_by == tools()?;
    for architecture in ARCHITECTURES {
        for name in NAMES {
            let file = packed(architecture, name);
            let unpack = ["--quiet", "--decompress", "--stdout"];
            let bytes = output(Command::new("zstd").args(unpack).arg(directory().join(&file)))?;
            if is_comparable {
                let same = bytes == object(architecture, name)?.1;
                ensure!(same, "{} is not what the sources give: {renew}", file.display());
            }
        }
    }
    Ok(is_comparable)
}
