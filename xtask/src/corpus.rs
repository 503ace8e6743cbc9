//! `cargo xtask corpus`: records jobs of real tools, and prints what `advise` says of each.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::demo::zstd_sources;
use crate::run::{as_root, cargo, exists, output, root, run as execute, target_dir};

/// Which jobs, and where their recordings stay.
#[derive(Args)]
pub(crate) struct CorpusArgs {
    /// Record only these jobs: names of scripts in fixtures/corpus.
    names: Vec<String>,
    /// Advise on the recordings of the last time, and record none.
    #[arg(long)]
    again: bool,
}

/// A script, and the programs that it needs.
struct Job {
    name: String,
    script: PathBuf,
    needs: Vec<String>,
}

impl Job {
    fn of(script: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&script).context("cannot read a job of the corpus")?;
        let needs = text.lines().find_map(|line| line.strip_prefix("# needs: ")).unwrap_or("");
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, script, needs: needs.split(' ').map(str::to_owned).collect() })
    }
}

/// Records each job in a directory of its own below the target directory, and prints the advice. A job whose tools are not
/// installed is named, and not run.
pub(crate) fn run(args: &CorpusArgs) -> Result<()> {
    execute(cargo().args(["build", "--release", "--package", "proctrace"]))?;
    let target = target_dir()?;
    let (proctrace, place) = (target.join("release/proctrace"), target.join("corpus"));
    fs::create_dir_all(&place).context("cannot create a directory for the corpus")?;
    let jobs = jobs(&args.names)?;
    for job in &jobs {
        let trace = place.join(format!("{}.ptrace", job.name));
        let missing: Vec<&str> =
            job.needs.iter().map(String::as_str).filter(|program| !exists(program)).collect();
        if args.again && !trace.exists() || !args.again && !missing.is_empty() {
            println!("\n== {}: not run, lacks {}", job.name, missing.join(", "));
            continue;
        }
        if !args.again {
            record(&proctrace, job, &place, &trace)?;
        }
        println!("\n== {}", job.name);
        let advice = output(std::process::Command::new(&proctrace).arg("advise").arg(&trace))?;
        print!("{}", String::from_utf8_lossy(&advice));
    }
    Ok(())
}

/// In the order of their names.
fn jobs(names: &[String]) -> Result<Vec<Job>> {
    let place = root().join("fixtures/corpus");
    let files = fs::read_dir(&place).context("cannot list fixtures/corpus")?;
    let mut scripts: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    scripts.retain(|file| file.extension().is_some_and(|extension| extension == "sh"));
    scripts.sort_unstable();
    let mut jobs = scripts.into_iter().map(Job::of).collect::<Result<Vec<_>>>()?;
    if let Some(unknown) = names.iter().find(|name| jobs.iter().all(|job| job.name != **name)) {
        bail!("no job is called {unknown}");
    }
    jobs.retain(|job| names.is_empty() || names.contains(&job.name));
    Ok(jobs)
}

/// A job that fails is recorded all the same: what is said of it is judged, too.
fn record(proctrace: &Path, job: &Job, place: &Path, trace: &Path) -> Result<()> {
    let work = place.join(&job.name);
    if work.exists() {
        fs::remove_dir_all(&work).context("cannot remove the job of the last time")?;
    }
    fs::create_dir_all(&work).context("cannot create a directory for a job")?;
    let log =
        fs::File::create(place.join(format!("{}.log", job.name))).context("cannot create a log")?;
    let mut command = as_root(proctrace);
    command.args(["record", "--quiet", "--output"]).arg(trace).args(["--", "sh"]).arg(&job.script);
    command.current_dir(&work).env("CORPUS", root().join("fixtures/corpus"));
    command.env("ZSTD", zstd_sources()?).env_remove("LD_LIBRARY_PATH");
    command.stdout(log.try_clone().context("cannot write a log")?).stderr(log);
    command.status().context("cannot run proctrace")?;
    if !trace.exists() {
        bail!("{} was not recorded: see its log in {}", job.name, place.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_says_what_it_needs() {
        let jobs = jobs(&[]).unwrap();
        assert!(jobs.len() >= 20);
        assert!(
            jobs.iter()
                .all(|job| !job.needs.is_empty() && job.needs.iter().all(|it| !it.is_empty()))
        );
        assert!(super::jobs(&["no such job".to_owned()]).is_err());
    }
}
