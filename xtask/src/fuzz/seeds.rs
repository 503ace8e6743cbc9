//! Seed corpora: committed files, converted to the input format of a target.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::run::{cargo, output, root};

/// Writes the seeds of a target into its corpus, in addition to the inputs found by earlier runs.
pub(super) fn write(target: &str, corpus: &Path) -> Result<()> {
    fs::create_dir_all(corpus).context("cannot create a directory for the corpus")?;
    let seeds = match target {
        "trace-reader" => traces()?.into_iter().flat_map(as_files).collect(),
        "record-decoder" | "replay" => return records(target, corpus),
        "import" => logs()?,
        "broker" | "rights" => regressions(target)?,
        "rules" => texts("analysis/rules", "toml")?,
        "budget" => [texts("fixtures/gates", "toml")?, texts("fixtures/gates", "json")?].concat(),
        // A byte of 0xff and a number denote each known attack string.
        _ => (0..=u8::MAX).map(|number| vec![0xff, number]).collect(),
    };
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number}")), seed).context("cannot write a seed")?;
    }
    Ok(())
}

fn files(directory: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(root().join(directory)).with_context(|| format!("cannot read {directory}"))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    Ok(files)
}

/// Whole files, and each paragraph separately.
fn texts(directory: &str, extension: &str) -> Result<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    for file in files(directory, extension)? {
        let text = fs::read_to_string(file)?;
        texts.extend(text.split("\n\n").map(|part| format!("{part}\n").into_bytes()));
        texts.push(text.into_bytes());
    }
    Ok(texts)
}

/// Each log, for all tasks and for one.
fn logs() -> Result<Vec<Vec<u8>>> {
    let logs = files("fixtures/strace", "log")?;
    let read = |path: &PathBuf| fs::read(path).unwrap_or_default();
    Ok(logs
        .iter()
        .flat_map(|path| [b's', b'2'].map(|how| [&[how], &read(path)[..]].concat()))
        .collect())
}

/// The inputs that ordinary tests run.
fn regressions(target: &str) -> Result<Vec<Vec<u8>>> {
    let directory = root().join("fuzz/regressions").join(target);
    let entries = fs::read_dir(directory).context("cannot read the regression inputs")?;
    Ok(entries.flatten().filter_map(|entry| fs::read(entry.path()).ok()).collect())
}

/// The small traces; larger ones contain nothing else.
fn traces() -> Result<Vec<PathBuf>> {
    let tour =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("tour"));
    Ok(files("fixtures/traces", "ptrace")?.into_iter().filter(tour).collect())
}

/// The file unchanged, and with the mark that requests corrected checksums.
fn as_files(path: PathBuf) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap_or_default();
    [0, 1].map(|mode| [&[mode], &bytes[..]].concat()).to_vec()
}

/// The records of these traces, as a target takes them.
fn records(target: &str, corpus: &Path) -> Result<()> {
    let write = ["run", "--quiet", "--release", "--package", "proctrace-trace"];
    let mut write_all = cargo();
    write_all.args(write).args(["--example", "seeds", "--", target]).arg(corpus).args(traces()?);
    output(&mut write_all).map(drop)
}
