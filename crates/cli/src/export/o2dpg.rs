//! `proctrace export --format o2dpg`: the files that O2DPG's workflow runner reads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_outputs::Access;
use proctrace_report::number::counted;
use proctrace_report::{o2dpg_filegraph, o2dpg_resources};

use crate::args::RulesArgs;
use crate::exit_code::Misuse;
use crate::waiting::during;
use crate::{incomplete, invoker, rules, say, whole};

pub(super) fn write(to: &Path, traces: &[PathBuf], with: &RulesArgs) -> Result<ExitCode> {
    let [trace] = traces else {
        bail!(Misuse("files for O2DPG are of one recording: give one trace".to_owned()));
    };
    let recording = rules::load(trace, with)?;
    incomplete::warn(trace, &recording);
    let used = during("analysing", || proctrace_analysis::workflow(&recording));
    if used.steps.is_empty() {
        bail!("the recording has no steps: give the workflow with --steps workflow.json");
    }
    invoker::outputs()
        .create_directory(to, Access::Umask)
        .with_context(|| format!("cannot create {}", to.display()))?;
    let mut files = vec![(
        to.join(format!("resources_proctrace_{}.json", used.runner_pid)),
        o2dpg_resources(&used)?,
    )];
    if recording.header().opens {
        let graph = to.join(format!("filegraph_proctrace_{}.json", used.runner_pid));
        files.insert(0, (graph, o2dpg_filegraph(&used)?));
    } else {
        say::note("no graph of files: recorded without --opens");
    }
    for (path, text) in &files {
        whole::fill(path, |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    let steps = counted(used.steps.len() as u64, "step", "steps");
    say::note(&format!("{steps} written to {}", names.join(" and ")));
    if recording.header().memory_interval_ns.is_none() {
        say::note("no memory among the resources: recorded without --memory");
    }
    Ok(ExitCode::SUCCESS)
}
