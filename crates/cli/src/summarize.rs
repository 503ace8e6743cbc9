//! `proctrace summarize`, and the summary that `record` writes.

mod jobs;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{Recording, Rules};
use proctrace_fleet::{About, KEY_BYTES_MIN, summarize};
use proctrace_node::Queue;
use proctrace_recorder::summaries::Summaries;
use proctrace_report::number::{bytes, counted};

use crate::args::{AboutArgs, RecordSummaryArgs, SummarizeArgs};
use crate::exit_code::Misuse;
use crate::query::without_repetitions;
use crate::waiting::during;
use crate::{incomplete, invoker, rules, say};

pub(crate) fn run(args: &SummarizeArgs) -> Result<ExitCode> {
    let about = about(&args.about)?;
    let mut traces = args.traces.clone();
    without_repetitions(&mut traces);
    let (mut files, mut written) = (0, 0);
    for trace in &traces {
        let recording = rules::load(trace, &args.rules)?;
        incomplete::warn(trace, &recording);
        let summary = || write(&recording, trace, &args.output, &about, &args.about);
        for (_, size) in during("summarizing", summary)? {
            files += 1;
            written += size as u64;
        }
    }
    say::note(&format!(
        "{} written to {} ({}) of {}",
        counted(files, "file", "files"),
        args.output.display(),
        bytes(written),
        counted(traces.len() as u64, "job", "jobs"),
    ));
    Ok(ExitCode::SUCCESS)
}

impl Summaries for RecordSummaryArgs {
    fn check(&self) -> Result<()> {
        about(&self.about).map(drop)
    }

    /// Removes the trace if it is not to be kept. A trace without a summary is always kept.
    fn recorded(&self, trace: &Path, quiet: bool) -> Result<()> {
        let Some(directory) = &self.summary else { return Ok(()) };
        let about = about(&self.about)?;
        let recording = rules::read(trace, &Rules::built_in())?;
        let files = write(&recording, trace, directory, &about, &self.about)
            .with_context(|| format!("cannot summarize {}", trace.display()))?;
        if self.discard_trace {
            std::fs::remove_file(trace)
                .with_context(|| format!("cannot remove {}", trace.display()))?;
        }
        if !quiet {
            let written = files.iter().map(|(_, size)| *size as u64).sum();
            say::note(&format!("summary in {} ({})", directory.display(), bytes(written)));
        }
        Ok(())
    }

    fn of_jobs(&self, directory: &Path, quiet: bool) -> Result<Option<Queue>> {
        jobs::start(self, directory, quiet)
    }
}

fn write(
    recording: &Recording,
    trace: &Path,
    directory: &Path,
    about: &About,
    args: &AboutArgs,
) -> Result<Vec<(std::path::PathBuf, usize)>> {
    let summary = summarize(recording, trace, about)?;
    let written = args.layout.write(directory, &summary, &invoker::outputs());
    written.with_context(|| format!("cannot write below {}", directory.display()))
}

/// Checks the options before anything is recorded or read.
fn about(args: &AboutArgs) -> Result<About> {
    let site_key = match &args.site_key {
        None => None,
        Some(path) => {
            let mut key = std::fs::read(path)
                .with_context(|| format!("cannot read the key {}", path.display()))?;
            // An editor ends the file with a line feed.
            while key.last().is_some_and(u8::is_ascii_whitespace) {
                key.pop();
            }
            if key.len() < KEY_BYTES_MIN {
                let why = format!(
                    "the key in {} has less than {KEY_BYTES_MIN} bytes; make one: head -c 32 \
                     /dev/urandom | base64 > FILE",
                    path.display()
                );
                return Err(Misuse(why).into());
            }
            Some(key)
        }
    };
    let batch_cpu_us = match args.batch_cpu {
        None => None,
        // Beyond that it is no CPU time, and not exact.
        Some(seconds) if (0.0..1e9).contains(&seconds) => Some((seconds * 1e6).round() as u64),
        Some(_) => return Err(Misuse("--batch-cpu must be from 0 to 1e9 seconds".into()).into()),
    };
    Ok(About { labels: args.labels.clone(), site_key, redact: args.redact, batch_cpu_us })
}
