//! Records the committed traces, which later versions must read and analyse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, ensure};
use proctrace_trace::{Reader, Writer};
use proctrace_wire::{Frames, IntoBytes, Record};
use xtask::run::{as_root, built, fixture, root};
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
    let tour = format!("tour-{}", proctrace_wire::WIRE_VERSION);
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

/// Copies a trace block by block, without the details of the machine it was recorded on.
fn publish(raw: &Path, name: &str) -> Result<()> {
    let mut reader = Reader::open(raw)?;
    let mut header = reader.header().clone();
    header.host = "example".to_owned();
    header.kernel = "6.18.0".to_owned();
    header.processor.model = header.processor.model.map(|_| "Example CPU".to_owned());
    let mut writer = Writer::new(Vec::new(), &header)?;
    while let Some(block) = reader.next_block() {
        let info = block.info;
        let bytes = with_common_mounts(&block.bytes)?;
        writer.append(info.stream, info.records, info.first_ns, info.last_ns, &bytes)?;
    }
    let trailer = reader.trailer().context("the recording is incomplete")?;
    let (bytes, _) = writer.finish(trailer)?;
    let path = committed(name);
    println!("{}: {} bytes", path.display(), bytes.len());
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The records of a block, with mount tables reduced to what every machine has.
fn with_common_mounts(block: &[u8]) -> Result<Vec<u8>> {
    const COMMON: [&str; 4] = ["/", "/dev", "/proc", "/sys"];
    let mut bytes = Vec::with_capacity(block.len());
    for frame in Frames::new(block) {
        let frame = frame?;
        let Record::Mounts(mut fixed, table) = Record::decode(frame)? else {
            bytes.extend_from_slice(frame.bytes);
            continue;
        };
        ensure!(fixed.bytes == fixed.total_bytes, "a mount table in several parts");
        let table = String::from_utf8_lossy(table);
        let lines = table
            .lines()
            .filter(|line| line.split(' ').nth(4).is_some_and(|point| COMMON.contains(&point)));
        let table: String = lines.map(|line| format!("{line}\n")).collect();
        let size = (size_of_val(&fixed) + table.len()).next_multiple_of(8);
        fixed.head.size = u16::try_from(size)?;
        fixed.bytes = u32::try_from(table.len())?;
        fixed.total_bytes = fixed.bytes;
        let end = bytes.len() + size;
        bytes.extend_from_slice(fixed.as_bytes());
        bytes.extend_from_slice(table.as_bytes());
        bytes.resize(end, 0);
    }
    Ok(bytes)
}
