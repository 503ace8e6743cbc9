//! `proctrace export --format prmon`: the files that prmon would have written.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_outputs::Access;
use proctrace_report::number::counted;
use proctrace_report::{prmon_json, prmon_text};

use crate::args::RulesArgs;
use crate::exit_code::Misuse;
use crate::query::refuse_traces;
use crate::waiting::during;
use crate::{incomplete, invoker, rules, say, whole};

pub(super) fn write(to: &Path, traces: &[PathBuf], with: &RulesArgs) -> Result<ExitCode> {
    let [trace] = traces else {
        bail!(Misuse("prmon files are of one recording: give one trace".to_owned()));
    };
    let recording = rules::load(trace, with)?;
    incomplete::warn(trace, &recording);
    let prmon = during("analysing", || proctrace_analysis::prmon(&recording));
    let (text, json) = paths(to)?;
    refuse_traces(&text)?;
    whole::fill(&text, |out| Ok(prmon_text(&prmon, out)?))?;
    whole::fill(&json, |out| Ok(out.write_all(prmon_json(&prmon)?.as_bytes())?))?;
    let rows = prmon.columns.first().map_or(0, |column| column.values.len() as u64);
    let shown = |path: &Path| path.display().to_string();
    say::note(&format!(
        "{} written to {} and {}",
        counted(rows, "row", "rows"),
        shown(&text),
        shown(&json)
    ));
    if !prmon.columns.iter().any(|column| column.name == "pss") {
        say::note("no columns of memory: recorded without --memory");
    }
    Ok(ExitCode::SUCCESS)
}

/// The two files: in a directory, or a file of that name and one with another ending.
fn paths(to: &Path) -> Result<(PathBuf, PathBuf)> {
    if to.extension().is_some_and(|ending| ending == "txt") && !to.is_dir() {
        return Ok((to.to_owned(), to.with_extension("json")));
    }
    invoker::outputs()
        .create_directory(to, Access::Umask)
        .with_context(|| format!("cannot create {}", to.display()))?;
    Ok((to.join("prmon.txt"), to.join("prmon.json")))
}
