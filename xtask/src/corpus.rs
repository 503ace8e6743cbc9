//! `cargo xtask corpus`: records jobs of real tools, and prints what `advise` says of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::run::{as_root, built, exists, output, root, target_dir};

use crate::demo::zstd_sources;

/// Ends the names of scripts that fetch and install what a job needs, before it is recorded.
const PREPARES: &str = "prepare.sh";

/// Which jobs, and where their recordings stay.
#[derive(Args)]
pub(crate) struct CorpusArgs {
    /// Record only these jobs: names of scripts in fixtures/corpus.
    names: Vec<String>,
    /// Record the jobs of fixtures/corpus/kept-back, for which no rule was changed.
    #[arg(long)]
    kept_back: bool,
    /// Advise on the recordings of the last time, and record none.
    #[arg(long)]
    again: bool,
}

/// A script, and the programs that it needs.
struct Job {
    name: String,
    script: PathBuf,
    needs: Vec<String>,
    /// Packages of Debian that have them.
    packages: String,
}

impl Job {
    fn of(script: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&script).context("cannot read a job of the corpus")?;
        let says = |what: &str| text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or("");
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let needs = says("# needs: ").split(' ').map(str::to_owned).collect();
        Ok(Self { name, needs, packages: says("# debian: ").to_owned(), script })
    }
}

/// Records each job in a directory of its own below the target directory, and prints the advice. A job whose tools are not
/// installed is named, and not run.
pub(crate) fn run(args: &CorpusArgs) -> Result<()> {
    let proctrace = built(&["proctrace"])?.join("proctrace");
    let place = target_dir()?.join("corpus");
    fs::create_dir_all(&place).context("cannot create a directory for the corpus")?;
    let jobs = jobs(&args.names, args.kept_back)?;
    for job in &jobs {
        let trace = place.join(format!("{}.ptrace", job.name));
        println!("\n== {}", job.name);
        if args.again && !trace.exists() {
            println!("Not recorded.");
            continue;
        }
        if !args.again
            && let Some(why) = record(&proctrace, job, &place, &trace)?
        {
            println!("Not run: {why}.");
            continue;
        }
        let advice = output(Command::new(&proctrace).arg("advise").arg(&trace))?;
        print!("{}", String::from_utf8_lossy(&advice));
    }
    Ok(())
}

/// Jobs in the order of their names.
fn jobs(names: &[String], kept_back: bool) -> Result<Vec<Job>> {
    let place = root().join("fixtures/corpus").join(if kept_back { "kept-back" } else { "" });
    let files = fs::read_dir(&place).context("cannot list fixtures/corpus")?;
    let mut scripts: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    scripts.retain(|file| file.extension().is_some_and(|extension| extension == "sh"));
    scripts.sort_unstable();
    scripts.retain(|file| !file.to_string_lossy().ends_with(PREPARES));
    let mut jobs = scripts.into_iter().map(Job::of).collect::<Result<Vec<_>>>()?;
    if let Some(unknown) = names.iter().find(|name| jobs.iter().all(|job| job.name != **name)) {
        bail!("no job is called {unknown}");
    }
    jobs.retain(|job| names.is_empty() || names.contains(&job.name));
    Ok(jobs)
}

/// Prepares and records a job; otherwise says why not. A job that fails is recorded all the same: what is said of it is
/// judged, too.
fn record(proctrace: &Path, job: &Job, place: &Path, trace: &Path) -> Result<Option<String>> {
    let work = place.join(&job.name);
    if work.exists() {
        fs::remove_dir_all(&work).context("cannot remove the job of the last time")?;
    }
    fs::create_dir_all(&work).context("cannot create a directory for a job")?;
    let log = |what: &str| {
        fs::File::create(place.join(format!("{}.{what}", job.name))).context("cannot create a log")
    };
    let prepares = job.script.with_extension(PREPARES);
    if prepares.exists() {
        let mut command = Command::new("sh");
        command.arg("-e").arg(&prepares).current_dir(&work).stdin(Stdio::null());
        command.env("CORPUS", root().join("fixtures/corpus"));
        let (out, err) = (log("prepare.log")?, log("prepare.err")?);
        let status = command.stdout(out).stderr(err).status().context("cannot run sh")?;
        if !status.success() {
            return Ok(Some(format!("{} failed: {status}", prepares.display())));
        }
    }
    let is_missing =
        |program: &&String| !exists(program) && !work.join("tools/bin").join(program).exists();
    let missing: Vec<&str> = job.needs.iter().filter(is_missing).map(String::as_str).collect();
    if !missing.is_empty() {
        let packages = match &*job.packages {
            "" => String::new(),
            packages => format!("; Debian's packages: {packages}"),
        };
        return Ok(Some(format!("lacks {}{packages}", missing.join(", "))));
    }
    let mut command = as_root(proctrace);
    command.args(["record", "--quiet", "--output"]).arg(trace).args(["--", "sh"]).arg(&job.script);
    command.current_dir(&work).env("CORPUS", root().join("fixtures/corpus"));
    command.env("ZSTD", zstd_sources()?).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    command.stdout(log("log")?).stderr(log("err")?);
    command.status().context("cannot run proctrace")?;
    if !trace.exists() {
        bail!("{} was not recorded: see its log in {}", job.name, place.display());
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_says_what_it_needs() {
        let known = jobs(&[], false).unwrap();
        let kept_back = jobs(&[], true).unwrap();
        assert!(known.len() >= 50 && kept_back.len() >= 10);
        let jobs: Vec<Job> = known.into_iter().chain(kept_back).collect();
        assert!(
            jobs.iter()
                .all(|job| !job.needs.is_empty() && job.needs.iter().all(|it| !it.is_empty()))
        );
        assert!(super::jobs(&["no such job".to_owned()], false).is_err());
    }
}
