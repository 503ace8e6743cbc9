//! Jobs of a real Slurm under the recorder of a node: each row that they leave is compared with what Slurm says.

mod cluster;
mod plan;
mod printed;
mod recorder;
mod site;
mod truth;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use cluster::{Cleaner, Cluster, wait_until};
use plan::{How, JOBS, Planned, Then, When};
use printed::text_of;
use recorder::{Recorder, Row, rows, summaries};
use site::Site;
use truth::{Job, jobs};
use verdict::Expected;
use xtask::run::{built, is_root};
use xtask::setup;

/// Which binary records.
#[derive(Args)]
pub(crate) struct SlurmArgs {
    /// Record with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    proctrace: Option<PathBuf>,
}

/// Time limit of a job of this kind, which Slurm starts and ends within seconds; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn run(args: &SlurmArgs) -> Result<()> {
    ensure!(is_root(), "namespaces, cgroups and users need root: sudo -E cargo xtask slurm");
    setup::run(setup::BUILD)?;
    setup::run(setup::SLURM)?;
    let proctrace = match &args.proctrace {
        Some(file) => file.canonicalize().with_context(|| format!("no {}", file.display()))?,
        None => built(&["proctrace"])?.join("proctrace"),
    };
    let site = Site::new()?;
    let cleaner = Cleaner::new(&site)?;
    let ran = ran(&site, &proctrace);
    if ran.is_err() {
        println!("{}", site.logs());
    }
    cleaner.clean()?;
    let (jobs, rows) = ran?;
    judge(&jobs, &rows)
}

/// Runs the jobs; returns what Slurm and what the lake say of them.
fn ran(site: &Site, proctrace: &Path) -> Result<(Vec<Job>, Vec<Row>)> {
    site.configure(false)?;
    let cluster = Cluster::new(site)?;
    cluster.start()?;
    println!("{}", cluster.output(&["slurmctld", "-V"])?.trim());
    let node = Node { site, cluster: &cluster };

    let first = Recorder::new(site, proctrace, "first")?;
    let submitted = node.submit(When::First)?;
    node.wait_for_end(submitted)?;
    node.wait_for_summaries()?;
    let waiting = node.submit(When::Across)?;
    node.wait_for_begin(&waiting)?;
    // What is younger than a second may not be in the trace of a recorder that is killed.
    std::thread::sleep(Duration::from_secs(2));
    first.kill()?;
    let unseen = node.submit(When::Unseen)?;
    node.wait_for_end(unseen)?;
    let begun = node.submit(When::BegunUnseen)?;
    node.wait_for_begin(&begun)?;
    let second = Recorder::new(site, proctrace, "second")?;
    for submitted in [waiting, begun] {
        node.let_go(&submitted)?;
        node.wait_for_end(submitted)?;
    }
    site.configure(true)?;
    cluster.restart_slurm()?;
    let submitted = node.submit(When::Second)?;
    node.wait_for_end(submitted)?;
    node.wait_for_summaries()?;
    second.stop()?;

    let jobs = jobs(&cluster)?;
    node.check_prologs(&jobs)?;
    Ok((jobs, rows(site, proctrace)?))
}

/// Node to which jobs are submitted.
struct Node<'a> {
    site: &'a Site,
    cluster: &'a Cluster<'a>,
}

/// Jobs that were submitted together.
struct Submitted {
    names: BTreeSet<&'static str>,
    /// srun(1) without sbatch(1).
    direct: Vec<Child>,
    /// The pipes on which scripts wait, held open.
    pipes: Vec<fs::File>,
}

impl Submitted {
    fn of<'j>(&self, jobs: &'j [Job]) -> impl Iterator<Item = &'j Job> {
        jobs.iter().filter(|job| self.names.contains(job.name.as_str()))
    }
}

impl Node<'_> {
    /// Submits all jobs of this time, and signals those that are to be signalled.
    fn submit(&self, when: When) -> Result<Submitted> {
        let mut submitted =
            Submitted { names: BTreeSet::new(), direct: Vec::new(), pipes: Vec::new() };
        for planned in JOBS.iter().filter(|planned| planned.when == when) {
            submitted.names.insert(planned.name);
            let mut command = self.cluster.command_of(usize::from(planned.is_of_second_user))?;
            let name = format!("--job-name={}", planned.name);
            match planned.how {
                How::Direct(line) => {
                    command.args(["srun", &name]).args(planned.options).args(line);
                    submitted
                        .direct
                        .push(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?);
                }
                How::Batch(_, arguments) => {
                    let script = self.script(planned, &mut submitted.pipes)?;
                    command.args(["sbatch", "--output=/dev/null", &name]).args(planned.options);
                    if let Some(elements) = planned.elements {
                        command.arg(format!("--array=0-{}", elements - 1));
                    }
                    text_of(command.arg(script).args(arguments))?;
                }
            }
        }
        for planned in JOBS.iter().filter(|planned| planned.when == when) {
            let (options, begins): (&[&str], _) = match planned.then {
                Then::Nothing => continue,
                Then::Cancel(options) => (options, true),
                Then::CancelBefore => (&[], false),
            };
            let is_it = |job: &Job| job.name == planned.name;
            if begins {
                wait_until(planned.name, LIMIT, || {
                    Ok(jobs(self.cluster)?
                        .iter()
                        .filter(|job| is_it(job))
                        .all(|job| self.has_begun(job)))
                })?;
            }
            let id = jobs(self.cluster)?.into_iter().find(is_it).context("no such job")?.id;
            self.cluster.output(&[&["scancel"], options, &[id.as_str()]].concat())?;
        }
        Ok(submitted)
    }

    /// Writes the script of a job.
    fn script(&self, planned: &Planned, pipes: &mut Vec<fs::File>) -> Result<PathBuf> {
        let How::Batch(body, _) = planned.how else { bail!("{} has no script", planned.name) };
        const BEGUN: &str = ": > \"begun.$SLURM_JOB_ID\"";
        let mut text = match body.contains("BEGUN") {
            true => body.replace("BEGUN", BEGUN),
            false => format!("{BEGUN}\n{body}"),
        };
        if planned.when.waits() {
            let wait = format!("{BEGUN}\nread -r go < \"go.$SLURM_JOB_NAME.$SLURM_ARRAY_TASK_ID\"");
            text = text.replace(BEGUN, &wait);
            for element in 0..planned.elements.unwrap_or(1) {
                let element = planned.elements.map(|_| element.to_string()).unwrap_or_default();
                let fifo = self.site.make_fifo(&format!("go.{}.{element}", planned.name))?;
                // For reading, too, so that this does not wait for the reader.
                pipes.push(fs::File::options().read(true).write(true).open(fifo)?);
            }
        }
        if text.contains("< never") {
            self.site.make_fifo("never")?;
        }
        let path = self.site.path("jobs").join(format!("{}.sh", planned.name));
        fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        Ok(path)
    }

    /// True if the script of a job has begun.
    fn has_begun(&self, job: &Job) -> bool {
        self.site.path("jobs").join(format!("begun.{}", job.id)).exists()
    }

    fn wait_for_begin(&self, submitted: &Submitted) -> Result<()> {
        wait_until("jobs to begin", LIMIT, || {
            let jobs = jobs(self.cluster)?;
            Ok(submitted.of(&jobs).all(|job| self.has_begun(job)))
        })
    }

    fn wait_for_end(&self, mut submitted: Submitted) -> Result<()> {
        wait_until("jobs to end", LIMIT, || {
            let jobs = jobs(self.cluster)?;
            let found: BTreeSet<&str> = submitted.of(&jobs).map(|job| job.name.as_str()).collect();
            Ok(found == submitted.names && submitted.of(&jobs).all(Job::is_over))
        })?;
        // They end as their jobs do; what that is, Slurm says.
        for direct in &mut submitted.direct {
            direct.wait()?;
        }
        Ok(())
    }

    /// Waits until the lake has as many rows as it must have. If it never has, the table shows which are missing.
    fn wait_for_summaries(&self) -> Result<()> {
        let mut number = 0;
        for job in &jobs(self.cluster)? {
            number += Expected { job, planned: planned(job)?, is_earlier: false }.rows().0;
        }
        let mut tries = LIMIT.as_secs() * 10;
        while summaries(self.site)? < number && tries > 0 {
            std::thread::sleep(Duration::from_millis(100));
            tries -= 1;
        }
        Ok(())
    }

    fn let_go(&self, submitted: &Submitted) -> Result<()> {
        for mut pipe in &submitted.pipes {
            pipe.write_all(b"go\n")?;
        }
        Ok(())
    }

    /// The prolog has run for the jobs for which it must have.
    fn check_prologs(&self, jobs: &[Job]) -> Result<()> {
        let ran = fs::read_to_string(self.site.path("prologs")).unwrap_or_default();
        let ran: BTreeSet<&str> = ran.lines().collect();
        for job in jobs {
            let is_second = planned(job)?.when == When::Second;
            ensure!(
                ran.contains(job.id.as_str()) == is_second,
                "the prolog of {} is amiss",
                job.name
            );
        }
        Ok(())
    }
}

fn planned(job: &Job) -> Result<&'static Planned> {
    let found = JOBS.iter().find(|planned| planned.name == job.name);
    found.with_context(|| format!("nobody has submitted {}", job.name))
}

/// Prints the table; fails if a row is wrong.
fn judge(jobs: &[Job], rows: &[Row]) -> Result<()> {
    let mut of_job: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    let mut wrong = 0;
    for row in rows {
        of_job.entry(row.batch_id.as_deref().unwrap_or_default()).or_default().push(row);
    }
    println!(
        "{:<5} {:<5} {:<13} {:<6} {:<15} {:<4} {:<11} verdict",
        "job", "known", "name", "user", "by Slurm", "exit", "processes"
    );
    for job in jobs {
        let mut expected = Expected { job, planned: planned(job)?, is_earlier: false };
        let found = of_job.remove(job.id.as_str()).unwrap_or_default();
        let (number, is_partial) = expected.rows();
        let line = |is_earlier: bool, exit: &str, processes: &str, verdict: &str| {
            let state = match is_earlier {
                true => "REQUEUED".to_owned(),
                false => format!("{} {}:{}", job.state, job.exit.0, job.exit.1),
            };
            println!(
                "{:<5} {:<5} {:<13} {:<6} {:<15} {exit:<4} {processes:<11} {verdict}",
                job.id,
                job.shown_id(),
                job.name,
                job.user,
                state
            );
        };
        if found.is_empty() {
            line(false, "", "", if number == 0 { "no row" } else { "WRONG: no row" });
        }
        for (nth, row) in found.iter().enumerate() {
            expected.is_earlier = nth == 0 && expected.planned.earlier.is_some();
            let faults = expected.faults(row);
            let exit = row.exit_code.map_or("-".to_owned(), |code| code.to_string());
            let count = row.processes.map_or("-".to_owned(), |count| count.to_string());
            let verdict = match (faults.is_empty(), is_partial) {
                (true, false) => "right",
                (true, true) => "partial",
                (false, _) => "WRONG",
            };
            line(
                expected.is_earlier,
                &exit,
                &format!("{count} of {}", expected.processes()),
                verdict,
            );
            for fault in &faults {
                println!("      {fault}");
            }
            wrong += usize::from(!faults.is_empty());
        }
        if found.len() != number {
            println!("      {} rows, not {number}", found.len());
            wrong += 1;
        }
    }
    for row in of_job.values().flatten() {
        println!("WRONG: a row of no job: {row:?}");
        wrong += 1;
    }
    ensure!(wrong == 0, "{wrong} rows are wrong");
    println!("{} jobs, {} rows: each is right or marked as partial", jobs.len(), rows.len());
    Ok(())
}
