//! Runs that are compared: their figures, from traces or from what `metrics` wrote.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proctrace_analysis::Analysis;
use proctrace_findings::Metrics;
use proctrace_gate::{Run, metrics_file};
use proctrace_trace::MAGIC;

use crate::args::RulesArgs;
use crate::rules;

/// The figures in a file, whichever kind it is of.
pub(crate) fn of_file(path: &Path, args: &RulesArgs) -> Result<Metrics> {
    let mut head = [0; MAGIC.len()];
    let is_trace = File::open(path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .read_exact(&mut head)
        .is_ok()
        && head == MAGIC;
    let text = if is_trace { None } else { std::fs::read_to_string(path).ok() };
    // What is neither is told why it is no trace.
    match text.filter(|text| text.trim_start().starts_with('{')) {
        Some(text) => Ok(metrics_file::from_json(&path.display().to_string(), &text)?),
        None => of_trace(path, args),
    }
}

/// The figures of a recording.
pub(crate) fn of_trace(path: &Path, args: &RulesArgs) -> Result<Metrics> {
    let recording = rules::load(path, args)?;
    Ok(Analysis::of(&recording).metrics()?)
}

/// The figures of each file, as one side of a comparison.
pub(crate) fn of_files(paths: &[PathBuf], args: &RulesArgs) -> Result<Vec<Run>> {
    paths
        .iter()
        .map(|path| {
            let name = path.display().to_string();
            Ok(Run { name, metrics: of_file(path, args)? })
        })
        .collect()
}
