//! `run`: stages a plan, runs it, and reports the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use proctrace_payload::{Declaration, Events, stage};
use tempfile::TempDir;

use crate::args::RunArgs;
use crate::{say, show, supervise};

/// The default of shells for an unset PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs a scenario and returns its exit status.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let (scenario, request) = args.size.read()?;
    let plan = scenario.plan(request)?;
    let declaration = plan.declare()?;
    if let Some(path) = &args.declare {
        let text = serde_json::to_string_pretty(&declaration)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let work = Work::make(args)?;
    let search = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut staged = stage(&plan, &work.path, &search)?;
    if args.inherit_library_path {
        staged.search_first(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default());
    }
    if !args.quiet {
        say::note(&announcement(&declaration));
    }
    let start = Instant::now();
    let ending = supervise::run(&staged).with_context(|| {
        format!("cannot run {}; if it is on a noexec mount, set --work", staged.path.display())
    })?;
    let wall = start.elapsed();
    if ending == supervise::Ending::Well && !args.quiet {
        show::print(&summary(plan.events.as_ref(), &staged.directory, wall)?)?;
    }
    work.end()?;
    Ok(match ending {
        supervise::Ending::Well => ExitCode::SUCCESS,
        supervise::Ending::Badly(status) => {
            say::note(&format!("the payload did not run as planned: {status}"));
            ExitCode::FAILURE
        }
        supervise::Ending::Stopped(signal) => {
            u8::try_from(128 + signal).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    })
}

fn announcement(declared: &Declaration) -> String {
    format!(
        "{} at scale {}, {} workers, seed {}: {} processes, {} threads, {} execs",
        declared.scenario,
        declared.scale,
        declared.workers,
        declared.seed,
        declared.processes,
        declared.threads,
        declared.execs
    )
}

/// Removes what an earlier run left in a work directory that is marked as reusable.
fn empty(path: &Path) -> std::io::Result<()> {
    if !path.join(REUSABLE).is_file() {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // The mark goes last: without it, what remains after an interruption would be refused.
        if entry.file_name() == REUSABLE {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_file(path.join(REUSABLE))
}

/// The workers' log lines about their events, and the total rate of events per second.
fn summary(events: Option<&Events>, directory: &Path, wall: Duration) -> Result<String> {
    let seconds = wall.as_secs_f64();
    let Some(events) = events else { return Ok(format!("{seconds:.2} s\n")) };
    let mut text = String::new();
    for log in &events.logs {
        let path = directory.join(log);
        let lines =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        text += &format!("{log}: {}\n", lines.trim_end());
    }
    let rate = events.total as f64 / seconds;
    Ok(text + &format!("{} events in {seconds:.2} s: {rate:.2} events/s\n", events.total))
}

/// A file that marks a work directory as one that may be used again.
const REUSABLE: &str = "proctrace-payload-work";

/// The work directory, and whether to keep it.
struct Work {
    path: PathBuf,
    /// Removes the directory when dropped.
    temporary: Option<TempDir>,
    keep: bool,
    quiet: bool,
}

impl Work {
    fn make(args: &RunArgs) -> Result<Self> {
        let (path, temporary) = match &args.work {
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("proctrace-payload-")
                    .tempdir()
                    .context("cannot create a temporary directory; set --work")?;
                (temporary.path().to_owned(), Some(temporary))
            }
            Some(path) => {
                let name = path.display();
                fs::create_dir_all(path).with_context(|| format!("cannot create {name}"))?;
                if args.reuse {
                    empty(path).with_context(|| format!("cannot reuse {name}"))?;
                }
                let entries = fs::read_dir(path).with_context(|| format!("cannot read {name}"))?;
                ensure!(entries.count() == 0, "{name} is not empty: choose a new directory");
                if args.reuse {
                    fs::write(path.join(REUSABLE), "")
                        .with_context(|| format!("cannot write to {name}"))?;
                }
                (path.clone(), None)
            }
        };
        let path =
            path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        Ok(Self { path, temporary, keep: args.keep || args.reuse, quiet: args.quiet })
    }

    /// Removes the directory, unless it is to be kept.
    fn end(self) -> Result<()> {
        if self.keep {
            self.temporary.map(TempDir::keep);
            if !self.quiet {
                say::note(&format!("kept {}", self.path.display()));
            }
            return Ok(());
        }
        let removed = match self.temporary {
            Some(temporary) => temporary.close(),
            None => fs::remove_dir_all(&self.path),
        };
        removed.with_context(|| format!("cannot remove {}", self.path.display()))
    }
}
