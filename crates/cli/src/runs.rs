//! Metrics of runs to compare, read from traces or from the output of `metrics`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proctrace_analysis::Analysis;
use proctrace_findings::Metrics;
use proctrace_gate::{RunMetrics, metrics_file};
use proctrace_trace::is_trace;

use crate::args::RulesArgs;
use crate::rules;
use crate::waiting::during;

/// Reads the metrics of a file of either kind.
pub(crate) fn of_file(path: &Path, args: &RulesArgs) -> Result<Metrics> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = if is_trace(path) { None } else { std::fs::read_to_string(path).ok() };
    // A file of neither kind gets the error of a trace.
    match text.filter(|text| text.trim_start().starts_with('{')) {
        Some(text) => Ok(metrics_file::from_json(&path.display().to_string(), &text)?),
        None => of_trace(path, args),
    }
}

/// The metrics of a recording.
pub(crate) fn of_trace(path: &Path, args: &RulesArgs) -> Result<Metrics> {
    let recording = rules::load_any(path, args)?;
    Ok(during("analysing", || Analysis::of(&recording).metrics()))
}

/// The metrics of each file, as one side of a comparison.
pub(crate) fn of_files(paths: &[PathBuf], args: &RulesArgs) -> Result<Vec<RunMetrics>> {
    paths
        .iter()
        .map(|path| {
            let name = path.display().to_string();
            Ok(RunMetrics { name, metrics: of_file(path, args)? })
        })
        .collect()
}
