//! Measures questions about a fleet of synthetic jobs: size of a row, and time by engine and number of files.
//!
//! The payloads are recorded at small scale; their summaries are models of as many jobs as are asked
//! for (crates/fleet/examples/synthetic.rs), which are written and compacted as those of real jobs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use xtask::run::{as_root, built, cargo, run as execute, target_dir};
use xtask::{python, setup};

/// Size of the fleet.
#[derive(Args)]
pub(crate) struct FleetArgs {
    /// Number of jobs, of 60 programs each.
    #[arg(long, default_value_t = 100_000)]
    jobs: u64,
    /// Numbers of files, before compaction, of which the engines are timed.
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values_t = [100, 1_000, 10_000])]
    files: Vec<usize>,
    /// Rounds of each question, of which the median is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Leave out Spark, which takes Java 17 and a package of 450 MB.
    #[arg(long)]
    no_spark: bool,
    /// Directory for the fleet, instead of target/bench: on tmpfs, files are written faster.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Keep the fleet.
    #[arg(long)]
    keep: bool,
}

/// Payloads and their scale: each takes a few seconds.
const PAYLOADS: [(&str, &str); 6] = [
    ("alice-o2-before", "0.02"),
    ("alice-o2-after", "0.02"),
    ("athena-mp", "0.1"),
    ("shared-writer-new", "0.1"),
    ("cmssw-generation", "0.1"),
    ("cmssw-reconstruction", "0.1"),
];
/// Limits of the compacted fleet.
const ROW_BYTES_MAX: f64 = 25.0;
const DUCKDB_S_MAX: f64 = 1.0;
const PACKAGES: [&str; 2] = ["duckdb==2.0.0", "pyspark==4.1.1"];
const SCRIPT: &str = include_str!("fleet.py");

pub(crate) fn run(args: &FleetArgs) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    if !args.no_spark {
        setup::run(setup::SPARK)?;
    }
    let release = built(&["proctrace", "proctrace-payload"])?;
    let both = ["--package", "proctrace", "--package", "proctrace-fleet"];
    execute(cargo().args(["build", "--release", "--example", "synthetic"]).args(both))?;
    let place = match &args.directory {
        Some(directory) => directory.join("proctrace-bench-fleet"),
        None => target_dir()?.join("bench/fleet"),
    };
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place)?;
    let python = environment(&target_dir()?.join("bench/fleet-python"), args)?;

    let (recorded, lake) = (place.join("recorded"), place.join("lake"));
    record(&release, &recorded)?;
    let took = timed(
        Command::new(release.join("examples/synthetic"))
            .args([&recorded, &lake])
            .arg(args.jobs.to_string()),
    )?;
    println!("{} jobs written in {took:.0} s", args.jobs);

    let files = programs(&lake)?;
    let bytes = size(&files)?;
    println!("before compaction: {} files of programs, {:.1} MB", files.len(), bytes / 1e6);
    // Files of all days, as many as there are.
    let few = args.files.iter().filter(|n| **n <= files.len()).map(|n| {
        let step = files.len() / n;
        files.iter().step_by(step).take(*n).cloned().collect::<Vec<_>>()
    });
    let few: Vec<Vec<PathBuf>> = few.collect();
    measure("duckdb", &python, few.clone(), args.rounds)?;
    if !args.no_spark {
        measure("spark", &python, few, args.rounds)?;
    }

    let took = timed(Command::new(release.join("proctrace")).arg("compact").arg(&lake))?;
    let files = programs(&lake)?;
    let bytes = size(&files)?;
    println!("compacted in {took:.0} s: {} files of programs, {:.1} MB", files.len(), bytes / 1e6);
    let duckdb = measure("duckdb", &python, vec![files.clone()], args.rounds)?;
    if !args.no_spark {
        measure("spark", &python, vec![files], args.rounds)?;
    }
    for question in ["SELECT program, sum(cpu_us) AS cpu FROM programs GROUP BY program", "wasted"]
    {
        let mut fleet = Command::new(release.join("proctrace"));
        let took = timed(fleet.arg("fleet").arg(question).arg(&lake).stdout(Stdio::null()))?;
        println!("proctrace fleet {question:?}: {took:.2} s with its start");
    }
    let row_bytes = bytes / (args.jobs as f64 * 60.0);
    println!("{row_bytes:.1} bytes a row (limit {ROW_BYTES_MAX})");
    println!("DuckDB, group-by of all rows: {duckdb:.2} s (limit {DUCKDB_S_MAX})");
    if !args.keep {
        fs::remove_dir_all(&place)?;
    }
    ensure!(row_bytes <= ROW_BYTES_MAX && duckdb < DUCKDB_S_MAX, "a limit is exceeded");
    Ok(())
}

/// Records each payload and keeps its summary.
fn record(release: &Path, recorded: &Path) -> Result<()> {
    for (name, scale) in PAYLOADS {
        let mut command = as_root(release.join("proctrace"));
        command.args(["record", "--quiet", "--discard-trace", "--output"]);
        command.arg(recorded.with_extension("ptrace")).arg("--summary").arg(recorded).arg("--");
        command.arg(release.join("proctrace-payload")).args(["run", name, "--scale", scale]);
        execute(command.stdout(Stdio::null()).env_remove("LD_LIBRARY_PATH"))?;
    }
    Ok(())
}

/// A Python with the engines.
fn environment(place: &Path, args: &FleetArgs) -> Result<PathBuf> {
    let python = place.join("bin/python");
    if !python.exists() {
        execute(Command::new("python3").args(["-m", "venv"]).arg(place))?;
    }
    let packages = &PACKAGES[..if args.no_spark { 1 } else { 2 }];
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    execute(python::command(&python).args(pip).args(packages))?;
    Ok(python)
}

/// Runs a command to its end; returns how many seconds it took.
fn timed(command: &mut Command) -> Result<f64> {
    let begun = Instant::now();
    execute(command)?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The files of the table `programs`.
fn programs(lake: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for day in fs::read_dir(lake.join("table=programs"))? {
        for file in fs::read_dir(day?.path())? {
            files.push(file?.path());
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    // Names are random numbers: neighbours are of different days.
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    Ok(files)
}

fn size(files: &[PathBuf]) -> Result<f64> {
    let mut bytes = 0;
    for file in files {
        bytes += fs::metadata(file)?.len();
    }
    Ok(bytes as f64)
}

/// Prints the times of an engine for sets of files; returns the median of the last.
fn measure(engine: &str, python: &Path, sets: Vec<Vec<PathBuf>>, rounds: usize) -> Result<f64> {
    let mut child = python::command(python)
        .args(["-c", SCRIPT])
        .env("PYSPARK_SUBMIT_ARGS", "--master local-cluster[2,1,1024] pyspark-shell")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", python.display()))?;
    let asked = json!({"engine": engine, "sets": sets, "rounds": rounds}).to_string();
    child.stdin.take().context("no stdin")?.write_all(asked.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{engine} failed: {}", output.status);
    }
    let mut last = 0.0;
    for line in String::from_utf8(output.stdout)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let seconds: Vec<f64> =
            line["seconds"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let (Some(least), Some(most)) = (seconds.first(), seconds.last()) else {
            bail!("{engine} printed no times");
        };
        last = seconds[seconds.len() / 2];
        println!(
            "{engine:7} {:>7} files {:>5} programs {:>12} processes  {last:.2} s [{least:.2} {most:.2}]",
            line["files"], line["programs"], line["processes"]
        );
    }
    Ok(last)
}
