//! Prepares the prerequisites of third-party payloads: a separate Python environment with wheels.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use xtask::ending::Unavailable;
use xtask::run::{root, run as execute, target_dir};
use xtask::{python, setup};

/// Payloads to prepare.
#[derive(Args)]
pub(crate) struct PayloadsArgs {
    /// Payload to prepare. The last line on stdout is the Python to run it with.
    #[arg(long, required = true, value_name = "PAYLOAD")]
    with: Vec<Extra>,
}

/// A payload that needs more than this workspace.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Extra {
    /// Proton collisions by Pythia, jets by FastJet, in the pattern of AthenaMP.
    Pythia8,
}

/// Prepares these payloads; an [`Unavailable`] if the wheels cannot be obtained.
pub(crate) fn run(args: &PayloadsArgs) -> Result<()> {
    for extra in &args.with {
        match extra {
            Extra::Pythia8 => pythia8()?,
        }
    }
    Ok(())
}

/// Installs the wheels of the payload unless they are there, and prints its job and its Python.
pub(crate) fn pythia8() -> Result<()> {
    let sources = root().join("fixtures/payloads/pythia8");
    let requirements = sources.join("requirements.txt");
    let payloads = target_dir()?.join("payloads");
    let home = payloads.join("pythia8");
    fs::create_dir_all(&payloads)
        .with_context(|| format!("cannot create {}", payloads.display()))?;
    // Serialises concurrent runs, which would delete each other's work. Closing the file unlocks
    // it.
    let path = payloads.join("pythia8.lock");
    let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {}", path.display()))?;

    if is_right(&home, &requirements) {
        println!("pythia8 is ready. Job and Python:");
    } else {
        make(&home, &requirements)?;
        println!("pythia8 has been installed. Job and Python:");
    }
    println!("{}", sources.join("job.py").display());
    println!("{}", home.join("bin/python").display());
    Ok(())
}

/// True if the venv was completed from these requirements and still works.
fn is_right(home: &Path, requirements: &Path) -> bool {
    let made_of = fs::read(home.join(MADE_OF)).ok();
    made_of.is_some() && made_of == fs::read(requirements).ok() && imports(home).is_ok()
}

/// The file in a venv that lists its requirements. It is written last.
const MADE_OF: &str = "made-of.txt";

/// The directory in a venv for the wheel downloaded to test the index.
const PROBE: &str = "probe";

/// Imports every package that the payload uses: fails if the interpreter was upgraded or removed
/// since then.
fn imports(home: &Path) -> Result<()> {
    let output = python::command(home.join("bin/python"))
        .args(["-c", "import fastjet, numpy, pyhepmc, pythia8mc"])
        .output()
        .with_context(|| format!("cannot run the Python in {}", home.display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}

/// Creates the venv from scratch.
fn make(home: &Path, requirements: &Path) -> Result<()> {
    setup::run(setup::PYTHON)?;
    let base = python::find().map_err(|reason| {
        Unavailable::new(format!(
            "the payload pythia8 needs CPython 3.11, 3.12 or 3.13 on x86_64 with glibc 2.28 or \
             later, because wheels exist only for these; found: {reason}"
        ))
    })?;
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    execute(python::command(&base).args(["-m", "venv"]).arg(home))?;
    if !index_answers(home) {
        return Err(Unavailable::new(
            "the payload pythia8 needs wheels from a Python package index, and pip can reach none \
             (see its messages above); for a proxy or a mirror, set HTTPS_PROXY or \
             PIP_INDEX_URL",
        )
        .into());
    }
    execute(
        pip(home)
            .args(["install", "--require-hashes", "--only-binary=:all:", "--requirement"])
            .arg(requirements),
    )
    .with_context(|| {
        format!(
            "the index was reached, but the wheels in {} cannot be installed (see pip's messages \
             above); if one was withdrawn, the README next to that file explains how to change it",
            requirements.display()
        )
    })?;
    fs::remove_dir_all(home.join(PROBE)).context("cannot remove the downloaded wheel")?;
    imports(home).context("the wheels are installed but cannot be imported")?;
    fs::copy(requirements, home.join(MADE_OF)).context("cannot complete the venv")?;
    Ok(())
}

/// True if any index is reachable: the smallest wheel is requested in any version, so that an error
/// in the requirements is not mistaken for a network failure.
fn index_answers(home: &Path) -> bool {
    pip(home)
        .args(["download", "--only-binary=:all:", "--no-deps", "--no-cache-dir", "--retries=2"])
        .arg("--dest")
        .arg(home.join(PROBE))
        .arg("zipp")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// pip of the venv.
fn pip(home: &Path) -> std::process::Command {
    let mut command = python::command(home.join("bin/python"));
    command.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]);
    // user settings would install the wheels elsewhere
    for variable in ["PIP_USER", "PIP_TARGET", "PIP_PREFIX"] {
        command.env_remove(variable);
    }
    command
}
