//! `proctrace series`: compares recordings of 1, 2, 4… workers or threads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{Options, Rules, SeriesOptions, SeriesRun, series};
use proctrace_event_logs as event_logs;
use proctrace_wire::escape::to_text;

use crate::args::SeriesArgs;
use crate::exit_code::Misuse;
use crate::report::{directory, event_pattern};
use crate::waiting::during;
use crate::{incomplete, print, rules, say};

/// A recording as specified on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    workers: Option<u64>,
    group: String,
}

pub(crate) fn run(args: &SeriesArgs) -> Result<ExitCode> {
    if !args.knee.is_finite() || args.knee <= 0.0 {
        bail!(Misuse("--knee must be greater than 0 percent".into()));
    }
    let named = named(args)?;
    let one_each = |count: usize, option: &str| match count {
        0 | 1 => Ok(()),
        count if count == named.len() => Ok(()),
        count => Err(Misuse(format!(
            "{option} has {count} values for {} runs: give one for all, or one per run",
            named.len()
        ))),
    };
    one_each(args.events.len(), "--events")?;
    one_each(args.events_log.len(), "--events-log")?;
    let pattern = event_pattern(args.events_regex.as_deref())?;

    let mut runs = Vec::with_capacity(named.len());
    for (at, run) in named.iter().enumerate() {
        let recording = rules::read(&run.path, &Rules::built_in())?;
        incomplete::warn(&run.path, &recording);
        let of_run = |len: usize| if len > 1 { at } else { 0 };
        let logs = match args.events_log.get(of_run(args.events_log.len())) {
            Some(log) => event_logs::of_recording(&recording, log, &pattern)?,
            None => Vec::new(),
        };
        let options = Options { pool: args.pool.clone(), event_logs: logs, ..Options::default() };
        let mut found =
            during("analysing", || SeriesRun::of(&recording, &options, &name_of(&run.path)));
        found.group.clone_from(&run.group);
        found.workers = run.workers.unwrap_or(found.workers);
        found.events = args.events.get(of_run(args.events.len())).copied().or(found.events);
        runs.push(found);
    }
    let content = series(
        &runs,
        &SeriesOptions { knee_percent: args.knee, against_first: args.against.is_some() },
    );
    if let Some(path) = &args.out {
        directory::write_content(path, "Series of recordings", &content, args.csv.dialect())?;
        say::note(&format!("series written to {}; start with index.md", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    print::table_answer(&content.tables, (args.format, &args.csv), print::style(None))
}

/// The recordings in order: that of --against first, then runs without a group, then groups.
fn named(args: &SeriesArgs) -> Result<Vec<Named>> {
    let mut all = Vec::new();
    if let Some(against) = &args.against {
        let (path, workers) = path_and_workers(against)?;
        let group = format!("against {}", name_of(&path));
        all.push(Named { path, workers, group });
    }
    for run in &args.runs {
        let (path, workers) = path_and_workers(run)?;
        all.push(Named { path, workers, group: String::new() });
    }
    for group in &args.group {
        let Some((name, runs)) = group.split_once('=') else {
            bail!(Misuse(format!(
                "--group {group} has no name; example: mp=one.ptrace,two.ptrace"
            )));
        };
        for run in runs.split(',').filter(|run| !run.is_empty()) {
            let (path, workers) = path_and_workers(run)?;
            all.push(Named { path, workers, group: name.to_owned() });
        }
    }
    Ok(all)
}

/// The files of all recordings; none if the arguments are wrong, which is reported elsewhere.
pub(crate) fn paths(args: &SeriesArgs) -> Vec<PathBuf> {
    named(args).unwrap_or_default().into_iter().map(|run| run.path).collect()
}

/// Parses FILE or FILE=N; an existing file of the full name has precedence.
fn path_and_workers(run: &str) -> Result<(PathBuf, Option<u64>)> {
    if let Some((path, workers)) = run.rsplit_once('=')
        && !Path::new(run).exists()
    {
        let workers: u64 = workers
            .parse()
            .ok()
            .filter(|workers| *workers > 0)
            .ok_or_else(|| Misuse(format!("in {run}, {workers:?} is not a worker count")))?;
        return Ok((path.into(), Some(workers)));
    }
    Ok((run.into(), None))
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    to_text(stem.as_encoded_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_say_how_many_workers_it_has() {
        assert_eq!(path_and_workers("a.ptrace").unwrap(), ("a.ptrace".into(), None));
        assert_eq!(path_and_workers("a=b.ptrace=8").unwrap(), ("a=b.ptrace".into(), Some(8)));
        for wrong in ["a.ptrace=", "a.ptrace=0", "a.ptrace=many", "a.ptrace=-1"] {
            assert!(path_and_workers(wrong).is_err(), "{wrong}");
        }
        let scratch = tempfile::tempdir().unwrap();
        let odd = scratch.path().join("run=3");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(path_and_workers(odd.to_str().unwrap()).unwrap(), (odd, None));
    }
}
