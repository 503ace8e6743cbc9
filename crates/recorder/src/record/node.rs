//! `proctrace record -a --per-cgroup`: one recorder for all jobs of a node.

mod outputs;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_node::{Jobs, RECORDED_VARIABLES};
use proctrace_probe::ENV_NAMES_MAX;
use proctrace_record::{
    CgroupPattern, Options, Scope, Signals, cgroup_root, header, record as follow, usage,
};

use super::closing::totals;
use super::settings::{backend, options};
use crate::args::{DEFAULT_TRACE, JobCgroups, RecordArgs};
use crate::exit_code::RECORDING_FAILED;
use crate::summaries::Summaries;
use crate::{notify, say};
use outputs::Files;

/// The directory of the traces, if none is named.
const DEFAULT_DIRECTORY: &str = "proctrace-jobs";

pub(crate) fn run(
    args: &RecordArgs,
    patterns: &[JobCgroups],
    summaries: &dyn Summaries,
) -> Result<ExitCode> {
    let patterns: Vec<CgroupPattern> =
        patterns.iter().flat_map(|JobCgroups(patterns)| patterns.clone()).collect();
    let root = cgroup_root().context("cannot record the jobs of this node")?;
    let directory = match args.output == Path::new(DEFAULT_TRACE) {
        true => Path::new(DEFAULT_DIRECTORY),
        false => &args.output,
    };
    let mut options = Options { scope: Scope::Jobs(patterns.clone()), ..options(args, None) };
    if !args.no_env {
        for name in RECORDED_VARIABLES {
            if !options.env_names.iter().any(|known| known == name) {
                options.env_names.push((*name).to_owned());
            }
        }
        // Those that --env names come first.
        options.env_names.truncate(ENV_NAMES_MAX);
    }
    // Before any thread is started, which inherits the signal mask.
    let signals = Signals::block().context("cannot handle signals")?;
    let mut source = backend(args)?.ebpf_only()?.load(&options, &[], args.quiet)?;
    if source.is_restricted() {
        bail!("recording the jobs of all users requires root or CAP_SYS_PTRACE");
    }
    let header = header(&[], &options, &*source)?;
    let files = Files::create(directory, header, args, summaries)?;
    let grace_s = u32::try_from(args.grace.as_secs()).unwrap_or(u32::MAX);
    let mut jobs = Jobs::new(files, patterns, &root, grace_s);
    if args.no_env {
        jobs = jobs.without_variables();
    }
    let finished = follow(&mut *source, &signals, None, &options, &mut jobs);
    // Whatever happened, the traces of the jobs that were recorded are completed.
    let done = jobs.finish().finish();
    let finished = finished?;
    let is_complete = done.is_complete();
    if !args.quiet {
        let used = usage(0);
        let cpu_s = (used.user_ns + used.system_ns) as f64 / 1e9;
        say::note(&format!(
            "{done}; recorder: {cpu_s:.2} s CPU, {}",
            proctrace_report::number::bytes(used.maxrss_bytes)
        ));
    }
    for loss in totals(&finished.losses) {
        say::note(&loss);
    }
    Ok(match is_complete {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(RECORDING_FAILED),
    })
}
