//! Records the committed traces, which later versions must read and analyse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, ensure};
use xtask::run::{as_root, built, cargo, fixture, output, root};
use xtask::setup;

/// Programs that the tour runs.
const PROGRAMS: &[&str] = &[
    "mixed",
    "birth",
    "rename",
    "path_search",
    "exec_argv",
    "misses",
    "threads",
    "burn",
    "daemon",
    "killed",
    "workdirs",
    "waits",
    "moments",
];

/// A directory whose name reveals nothing about the machine.
const PLACE: &str = "/tmp/tour";

/// The same for the payloads.
const PAYLOAD_PLACE: &str = "/tmp/alice";

/// Recordings of each ALICE payload: two, so that a comparison has a spread.
const PAYLOAD_RUNS: [(&str, &str); 4] = [
    ("alice-o2-before", "alice-o2-before"),
    ("alice-o2-before", "alice-o2-before-2"),
    ("alice-o2-after", "alice-o2-after"),
    ("alice-o2-after", "alice-o2-after-2"),
];

/// Records the traces missing in fixtures/traces: existing ones are never replaced.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    let release = built(&["proctrace", "proctrace-fixtures", "proctrace-payload"])?;
    let tour = format!("tour-{}", wire_version()?);
    if is_missing(&tour) {
        within(PLACE, |place| record_tour(&release, place, &tour))?;
    }
    for (scenario, name) in PAYLOAD_RUNS {
        if is_missing(name) {
            within(PAYLOAD_PLACE, |place| record_payload(&release, place, scenario, name))?;
        }
    }
    Ok(())
}

fn is_missing(name: &str) -> bool {
    !committed(name).exists()
}

fn committed(name: &str) -> std::path::PathBuf {
    root().join("fixtures/traces").join(format!("{name}.ptrace"))
}

/// Runs `work` in a directory created for it alone.
fn within(place: &str, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    fs::create_dir(place).with_context(|| format!("cannot create {place}"))?;
    let made = work(Path::new(place));
    fs::remove_dir_all(place).with_context(|| format!("cannot remove {place}"))?;
    made
}

fn record_payload(release: &Path, place: &Path, scenario: &str, name: &str) -> Result<()> {
    fs::copy(release.join("proctrace-payload"), place.join("proctrace-payload"))?;
    let work = place.join("work").display().to_string();
    let command = ["./proctrace-payload", "run", scenario, "--scale", "0.01", "--work", &work];
    let (raw, status) = record(release, place, &["--interval", "200ms"], &command)?;
    ensure!(status.success(), "{scenario} failed ({status})");
    publish(&raw, name)
}

fn record_tour(release: &Path, place: &Path, name: &str) -> Result<()> {
    for program in PROGRAMS {
        fs::copy(fixture(release, program)?, place.join(program))?;
    }
    fs::copy(root().join("fixtures/traces/tour.sh"), place.join("tour.sh"))?;
    let options = ["--opens", "--memory=50ms", "--interval", "20ms"];
    let (raw, status) = record(release, place, &options, &["./tour.sh"])?;
    ensure!(status.code() == Some(3), "the tour failed ({status}; expected exit status 3)");
    publish(&raw, name)
}

/// Records a command in a clean environment.
fn record(
    release: &Path,
    place: &Path,
    options: &[&str],
    command: &[&str],
) -> Result<(PathBuf, ExitStatus)> {
    let raw = place.join("raw.ptrace");
    let mut record = as_root("env");
    record.args(["-i", "PATH=/usr/bin:/bin"]).arg(release.join("proctrace")).arg("record");
    record.args(options).arg("--output").arg(&raw).arg("--").args(command).current_dir(place);
    Ok((raw, record.status().context("cannot run proctrace")?))
}

/// Copies a trace without the details of the machine it was recorded on.
fn publish(raw: &Path, name: &str) -> Result<()> {
    let path = committed(name);
    let copy = ["run", "--quiet", "--release", "--package", "proctrace-trace"];
    output(cargo().args(copy).args(["--example", "publishable", "--"]).arg(raw).arg(&path))?;
    println!("{}: {} bytes", path.display(), fs::metadata(&path)?.len());
    Ok(())
}

/// Version of the records, as C and Rust have it.
fn wire_version() -> Result<String> {
    let header = fs::read_to_string(root().join("bpf/wire.h"))?;
    let version = header.lines().find_map(|line| line.strip_prefix("#define WIRE_VERSION "));
    version.map(|version| version.trim().to_owned()).context("bpf/wire.h has no WIRE_VERSION")
}
