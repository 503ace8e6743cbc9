//! Summarizes the jobs of a node as they end: one at a time, in a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use proctrace_fleet::create_lake;
use proctrace_node::{Queue, cgroup_of};
use proctrace_recorder::summaries::NOTIFY_SOCKET;
use rustix::fs::{Access, access};

use crate::args::RecordSummaryArgs;
use crate::{live, say};

/// The lowest priority of nice(2): jobs come first.
const NICENESS: i32 = 19;

/// Starts with what an earlier recorder has left in the directory; None if no summaries are wanted.
pub(super) fn start(
    args: &RecordSummaryArgs,
    directory: &Path,
    quiet: bool,
) -> Result<Option<Queue>> {
    let Some(lake) = &args.summary else { return Ok(None) };
    // Now, not when the first job has ended and nobody looks any more.
    create_lake(lake)
        .and_then(|()| Ok(access(lake, Access::WRITE_OK | Access::EXEC_OK)?))
        .with_context(|| format!("cannot write summaries to {}", lake.display()))?;
    let work = Work {
        arguments: arguments(args, lake),
        discards: args.discard_trace,
        redacts: args.about.redact,
    };
    let summarize = move |trace: &Path, cgroup: Option<&str>| match work.summarize(trace, cgroup) {
        Ok(said) => {
            if !quiet {
                say::note(&said);
            }
            true
        }
        Err(error) => {
            say::error(&error);
            false
        }
    };
    let queue = Queue::start(summarize).context("cannot start a thread")?;
    // Traces that are kept may have been summarized.
    if args.discard_trace {
        for trace in left_in(directory) {
            let cgroup = cgroup_of(&trace);
            queue.add(trace, cgroup);
        }
    }
    Ok(Some(queue))
}

struct Work {
    arguments: Vec<OsString>,
    discards: bool,
    redacts: bool,
}

impl Work {
    /// Summarizes in another process: its memory depends on the job, and what goes wrong there leaves the recorder
    /// alone.
    fn summarize(&self, trace: &Path, cgroup: Option<&str>) -> Result<String> {
        let context = || format!("cannot summarize {}", trace.display());
        // The program that runs, even if its file has been replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg("summarize").args(&self.arguments);
        // Labels are written as they are, and the name of a cgroup often is the number of the job.
        if let Some(cgroup) = cgroup.filter(|_| !self.redacts) {
            command.arg("--label").arg(format!("cgroup={cgroup}"));
        }
        command.arg("--").arg(trace).stdin(Stdio::null()).stdout(Stdio::null());
        command.env_remove(NOTIFY_SOCKET);
        let child = command.stderr(Stdio::piped()).spawn().with_context(context)?;
        if let Ok(pid) = i32::try_from(child.id()) {
            let pid = rustix::process::Pid::from_raw(pid);
            // It works as well at any other priority.
            let _ = rustix::process::setpriority_process(pid, NICENESS);
        }
        let output = child.wait_with_output().with_context(context)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("proctrace: ").to_owned();
        if !output.status.success() {
            bail!("cannot summarize {}, which is kept: {said}", trace.display());
        }
        if self.discards {
            std::fs::remove_file(trace)
                .with_context(|| format!("cannot remove {}", trace.display()))?;
        }
        Ok(said)
    }
}

/// The arguments of `summarize` that are the same for all jobs.
fn arguments(args: &RecordSummaryArgs, lake: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["--output".into(), lake.into()];
    for (name, value) in &args.about.labels {
        arguments.extend(["--label".into(), format!("{name}={value}").into()]);
    }
    if let Some(key) = &args.about.site_key {
        arguments.extend(["--site-key".into(), key.into()]);
    }
    if args.about.redact {
        arguments.push("--redact".into());
    }
    arguments.extend(["--layout".into(), args.about.layout.to_string().into()]);
    arguments
}

/// Traces whose recorder was killed.
fn left_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut left: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptrace"))
        .filter(|path| !live::is_held(path))
        .collect();
    left.sort();
    left
}
