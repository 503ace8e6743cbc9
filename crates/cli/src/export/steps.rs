//! `proctrace export` for engines of workflows and batch systems: what steps used, and what to request for them.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{requests, requests_together, step_graph, steps_used};
use proctrace_report::number::counted;
use proctrace_report::{EngineFile, GraphLanguage, RequestSyntax};

use crate::args::{RulesArgs, TablesFormat};
use crate::exit_code::Misuse;
use crate::query::refuse_traces;
use crate::{incomplete, rules, say, whole};

/// What is exported of steps.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Usage(EngineFile),
    Requests(RequestSyntax),
    Graph(GraphLanguage),
}

impl Of {
    pub(super) fn format(format: TablesFormat) -> Option<Self> {
        Some(match format {
            TablesFormat::NextflowTrace => Self::Usage(EngineFile::NextflowTrace),
            TablesFormat::SnakemakeBenchmark => Self::Usage(EngineFile::SnakemakeBenchmark),
            TablesFormat::Slurm => Self::Requests(RequestSyntax::Slurm),
            TablesFormat::Htcondor => Self::Requests(RequestSyntax::HtCondor),
            TablesFormat::SnakemakeProfile => Self::Requests(RequestSyntax::Snakemake),
            TablesFormat::Dot => Self::Graph(GraphLanguage::Dot),
            TablesFormat::Mermaid => Self::Graph(GraphLanguage::Mermaid),
            TablesFormat::NextflowConfig => Self::Requests(RequestSyntax::Nextflow),
            _ => return None,
        })
    }
}

pub(super) fn write(to: &Path, traces: &[PathBuf], what: Of, with: &RulesArgs) -> Result<ExitCode> {
    let (text, items) = match what {
        Of::Usage(file) => usage(traces, file, with)?,
        Of::Requests(syntax) => request(traces, syntax, with)?,
        Of::Graph(language) => graph(traces, language, with)?,
    };
    if to == Path::new("-") {
        stdout().lock().write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    refuse_traces(to)?;
    // Names of steps may be commands, with secrets in them.
    whole::fill(to, |out| Ok(out.write_all(text.as_bytes())?))?;
    say::note(&format!("{items} written to {}", to.display()));
    Ok(ExitCode::SUCCESS)
}

fn usage(traces: &[PathBuf], file: EngineFile, with: &RulesArgs) -> Result<(String, String)> {
    let [trace] = traces else {
        bail!(Misuse("this format is of one recording: give one trace".to_owned()));
    };
    let recording = rules::load(trace, with)?;
    incomplete::warn(trace, &recording);
    let steps = steps_used(&recording, file.coordinator());
    if steps.is_empty() {
        bail!("the recording has no steps of {} (docs/steps.md)", file.coordinator());
    }
    if recording.header().memory_interval_ns.is_none() {
        say::note(
            "memory is the sum of the peaks of processes that were alive at one time: recorded without --memory",
        );
    }
    let items = counted(steps.len() as u64, "step", "steps");
    Ok((file.write(&steps, &recording.header().host), items))
}

fn graph(
    traces: &[PathBuf],
    language: GraphLanguage,
    with: &RulesArgs,
) -> Result<(String, String)> {
    let [trace] = traces else {
        bail!(Misuse("a graph is of one recording: give one trace".to_owned()));
    };
    let recording = rules::load(trace, with)?;
    incomplete::warn(trace, &recording);
    if !recording.header().opens {
        bail!("who reads and writes files is not known: record with --opens");
    }
    let graph = step_graph(&recording);
    if graph.nodes.is_empty() {
        bail!("no step reads what another one writes");
    }
    if graph.is_of_groups {
        say::note("there are too many steps for a picture: it has their groups");
    }
    let items = counted(graph.nodes.len() as u64, "node", "nodes");
    Ok((language.write(&graph), items))
}

fn request(
    traces: &[PathBuf],
    syntax: RequestSyntax,
    with: &RulesArgs,
) -> Result<(String, String)> {
    let mut all = Vec::with_capacity(traces.len());
    for trace in traces {
        let recording = rules::load(trace, with)?;
        incomplete::warn(trace, &recording);
        all.push(requests(&recording, syntax.coordinator()));
    }
    let all = requests_together(all);
    let groups = syntax.groups(&all);
    if let (0, Some(engine)) = (groups, syntax.coordinator()) {
        bail!("no group of steps is a rule or process of {engine} (docs/steps.md)");
    }
    let items = counted(groups as u64, "group of steps", "groups of steps");
    Ok((syntax.write(&all), format!("requests for {items}")))
}
