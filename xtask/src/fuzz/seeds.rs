//! Seed corpora: committed files, converted to the input format of a target.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proctrace_trace::Reader;
use proctrace_wire::{Frames, Kind};
use xtask::run::root;

/// Writes the seeds of a target into its corpus, in addition to the inputs found by earlier runs.
pub(super) fn write(target: &str, corpus: &Path) -> Result<()> {
    fs::create_dir_all(corpus).context("cannot create a directory for the corpus")?;
    let seeds = match target {
        "trace-reader" => traces()?.into_iter().flat_map(as_files).collect(),
        "record-decoder" => blocks()?,
        "replay" => blocks()?.iter().map(|block| as_replayed(block)).collect(),
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

/// The record blocks of these traces, cut into pieces at record boundaries.
fn blocks() -> Result<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    for path in traces()? {
        let mut reader = Reader::open(&path)?;
        while let Some(block) = reader.next_block() {
            let frames: Vec<&[u8]> =
                Frames::new(&block.bytes).flatten().map(|frame| frame.bytes).collect();
            blocks.extend(frames.chunks(40).map(<[&[u8]]>::concat));
        }
    }
    Ok(blocks)
}

/// A mark for a complete trace, then each record in the input format of fuzz/harness/replay.rs: its
/// kind, the length of its tail, and the rest without kind and size.
fn as_replayed(block: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    for frame in Frames::new(block).flatten() {
        let Some(kind) = Kind::from_number(frame.head.kind) else { continue };
        let Some(tail) = frame.bytes.len().checked_sub(kind.layout().size) else { continue };
        let Ok(tail) = u8::try_from(tail) else { continue };
        out.extend([kind as u8, tail]);
        out.extend_from_slice(&frame.bytes[4..]);
    }
    out
}
