//! Making the trace that is committed for later versions to read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use proctrace_trace::{Reader, Writer};

use crate::run::{as_root, cargo, output, root, run as execute, target_dir};
use crate::setup;

/// Programs that the tour calls.
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
];

/// A place whose name tells nothing of the machine.
const PLACE: &str = "/tmp/tour";

/// Records the tour into fixtures/traces.
pub(crate) fn run() -> Result<()> {
    setup::run(setup::BUILD)?;
    let packages = ["--package", "proctrace", "--package", "proctrace-fixtures"];
    execute(cargo().args(["build", "--release"]).args(packages))?;
    let release = target_dir()?.join("release");
    let place = Path::new(PLACE);
    fs::create_dir(place).with_context(|| format!("cannot make {PLACE}"))?;
    let made = record(&release, place);
    fs::remove_dir_all(place).with_context(|| format!("cannot remove {PLACE}"))?;
    made
}

fn record(release: &Path, place: &Path) -> Result<()> {
    for program in PROGRAMS {
        let path = output(Command::new(release.join("fixture-path")).arg(program))?;
        fs::copy(String::from_utf8(path)?.trim_end(), place.join(program))?;
    }
    fs::copy(root().join("fixtures/traces/tour.sh"), place.join("tour.sh"))?;
    let raw = place.join("raw.ptrace");
    let status = as_root("env")
        .args(["-i", "PATH=/usr/bin:/bin"])
        .arg(release.join("proctrace"))
        .args(["record", "--interval", "20ms", "--output"])
        .arg(&raw)
        .args(["--", "./tour.sh"])
        .current_dir(place)
        .status()
        .context("cannot run proctrace")?;
    ensure!(status.code() == Some(3), "the tour ended with {status}");

    // Block by block into a trace that does not say where it was made.
    let mut reader = Reader::open(&raw)?;
    let mut header = reader.header().clone();
    header.host = "example".to_owned();
    header.kernel = "6.18.0".to_owned();
    let mut writer = Writer::new(Vec::new(), &header)?;
    while let Some(block) = reader.next_block() {
        let info = block.info;
        writer.append(info.stream, info.records, info.first_ns, info.last_ns, &block.bytes)?;
    }
    let trailer = reader.trailer().context("the recording is not complete")?;
    let (bytes, _) = writer.finish(trailer)?;
    let name = format!("tour-{}.ptrace", proctrace_wire::WIRE_VERSION);
    let path = root().join("fixtures/traces").join(name);
    println!("{}: {} bytes", path.display(), bytes.len());
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
