//! A long stress test of all features at once: nothing may be lost, the consistency laws must hold,
//! and the recorder's memory must not grow with the payload.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use xtask::run::{as_root, built, fixture, output};
use xtask::setup;

/// Size and number of the storms.
#[derive(Args)]
pub(crate) struct SoakArgs {
    /// Approximate number of processes per storm. A storm of a tenth of this size runs first, for
    /// comparison of memory.
    #[arg(long, default_value_t = 200_000)]
    processes: u64,
    /// Number of storms of this size.
    #[arg(long, default_value_t = 2)]
    runs: u32,
}

/// Maximum memory of the recorder, excluding its two rings.
const MEMORY_MAX: u64 = 128 << 20;

pub(crate) fn run(args: &SoakArgs) -> Result<()> {
    setup::run(setup::BUILD)?;
    let release = built(&["proctrace", "proctrace-fixtures"])?;
    println!(
        "{:>10} {:>9} {:>10} {:>6} {:>14}",
        "processes", "threads", "misses", "lost", "recorder RSS"
    );
    storm(&release, args.processes / 10)?;
    for _ in 0..args.runs {
        storm(&release, args.processes)?;
    }
    Ok(())
}

/// Records one storm and compares it with the declarations of its programs.
fn storm(release: &Path, about: u64) -> Result<()> {
    // `mixed` creates 2.25 processes per round, `daemon` three.
    let rounds = about * 4 / 9;
    let daemons = about / 1000;
    let script = format!(
        "(i=0; while [ $i -lt {daemons} ]; do {daemon} 5 1; i=$((i + 1)); done) & {mixed} {rounds}; wait",
        daemon = fixture(release, "daemon")?.display(),
        mixed = fixture(release, "mixed")?.display(),
    );
    let trace = release.join("soak.ptrace");
    let status = as_root(release.join("proctrace"))
        .args(["record", "--quiet", "--output"])
        .arg(&trace)
        .args(["--", "sh", "-c", &script])
        .env_remove("LD_LIBRARY_PATH")
        .status()
        .context("cannot run proctrace")?;
    ensure!(status.success(), "the storm ended with {status}");
    let proctrace = |arguments: &[&str]| -> Result<serde_json::Value> {
        let text = output(Command::new(release.join("proctrace")).args(arguments).arg(&trace))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let check = Command::new(release.join("proctrace")).arg("check").arg(&trace).output()?;
    ensure!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let summary = proctrace(&["report", "--json"])?["summary"].take();
    let figure = |name: &str| summary[name].as_u64().with_context(|| format!("no {name}"));
    let (processes, threads) = (figure("processes")?, figure("threads")?);
    // the shell, its subshell, `mixed` and its processes, and three per daemon
    let declared = 3 + 2 * rounds + rounds / 4 + 3 * daemons;
    ensure!(processes == declared, "recorded {processes} processes, but {declared} are declared");
    ensure!(threads == rounds, "recorded {threads} threads, but {rounds} are declared");
    ensure!(figure("detached_processes")? >= daemons, "daemons are missing");
    let header = proctrace(&["dump", "--header"])?;
    let ring_bytes = header["header"]["ring_bytes"].as_u64().context("no ring size")?;
    let memory = header["trailer"]["recorder"]["maxrss_bytes"].as_u64().context("no memory")?;
    ensure!(memory < MEMORY_MAX + 2 * ring_bytes, "the recorder used {memory} bytes of memory");
    println!(
        "{processes:>10} {threads:>9} {:>10} {:>6} {:>11} MB",
        figure("lookups_failed")?,
        0,
        memory / 1_000_000
    );
    Ok(())
}
