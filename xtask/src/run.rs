//! Runs other programs and echoes their command lines.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The root of the workspace in which `cargo xtask` was called, since clones that share a target
/// directory may run each other's binary.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().unwrap_or(&manifest).to_owned()
}

/// The cargo that invoked us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A program whose children are interrupted by SIGINT and SIGQUIT even if we ignore them, as what runs behind `nohup … &`
/// does: tests send these signals and wait for what they cause. Where env(1) cannot do that, just the program.
pub fn that_can_be_interrupted(program: impl AsRef<OsStr>) -> Command {
    const DEFAULT: &str = "--default-signal=INT,QUIT";
    let has_default = Command::new("env")
        .args([DEFAULT, "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_default {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.arg(DEFAULT).arg(program);
    command
}

/// Builds these packages; returns the directory of their programs.
pub fn built(packages: &[&str]) -> Result<PathBuf> {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    run(cargo().args(["build", "--release"]).args(packages))?;
    Ok(target_dir()?.join("release"))
}

/// A program of the package of fixtures, which must have been built.
pub fn fixture(release: &Path, name: &str) -> Result<PathBuf> {
    let path = output(Command::new(release.join("fixture-path")).arg(name))?;
    let path = PathBuf::from(String::from_utf8(path).context("a path is not UTF-8")?.trim_end());
    ensure!(path.is_file(), "fixture {name} is missing");
    Ok(path)
}

/// cargo's target directory.
pub fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str();
    target.map(PathBuf::from).context("cargo metadata names no target directory")
}

/// cargo's metadata of the workspace and its dependencies.
pub fn metadata() -> Result<serde_json::Value> {
    let output = cargo()
        .args(["metadata", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed");
    }
    serde_json::from_slice(&output.stdout).context("cannot parse the output of cargo metadata")
}

/// A command run as root, through sudo if we are not.
pub fn as_root(program: impl AsRef<OsStr>) -> Command {
    if is_root() {
        Command::new(program)
    } else {
        let mut command = Command::new("sudo");
        command.arg(program);
        command
    }
}

/// True if we are root.
pub fn is_root() -> bool {
    // The owner of /proc/self is our effective user.
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Runs a command to completion; fails if it does not succeed.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command to completion and returns its output.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", line(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", line(command), output.status);
    }
    Ok(output.stdout)
}

/// True if a program of this name is installed.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // where Debian keeps bpftool, often not on PATH
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(program).is_file())
}

/// The command line of a command.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
