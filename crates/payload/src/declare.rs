//! The declaration of what a recording must show, computed from the plan, not from a run of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{MOST_TASKS, PlanError};
use crate::plan::{Phase, Plan};
use crate::step::{Exec, NodeId, Program, Step};

/// The name of the process that runs a plan.
pub const SUPERVISOR: &str = "proctrace-payload";

/// Counts that a recording must show, `proctrace-payload` itself included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Declaration {
    /// The scenario.
    pub scenario: String,
    /// Its scale.
    pub scale: f64,
    /// Its workers.
    pub workers: u32,
    /// Its seed.
    pub seed: u64,
    /// Processes, including the supervisor.
    pub processes: u64,
    /// Threads, excluding the first of each process.
    pub threads: u64,
    /// Successful execs.
    pub execs: u64,
    /// Processes whose parent exits first.
    pub detached: u64,
    /// Counts by the name in argv\[0\], without directories.
    pub programs: BTreeMap<String, Counts>,
    /// Failed look-ups in the payload's own directories; others depend on the machine's C library.
    pub failed_lookups: Vec<FailedLookups>,
    /// Events, if the scenario has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<DeclaredEvents>,
    /// The sequence of phases.
    pub phases: Vec<Phase>,
}

/// The declared counts of one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Its successful execs.
    pub execs: u64,
    /// Processes whose last program this is; a process without exec counts as its parent's program.
    pub processes: u64,
    /// Threads of these.
    pub threads: u64,
}

/// Failed look-ups of files directly in one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedLookups {
    /// The family of calls.
    pub family: &'static str,
    /// The directory, relative to the work directory.
    pub directory: String,
    /// Prefix of the file names.
    pub prefix: &'static str,
    /// Number of failed look-ups.
    pub count: u64,
}

/// Events of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredEvents {
    /// Events of all workers together.
    pub total: u64,
    /// Events of each worker, if deterministic.
    pub per_worker: Option<Vec<u64>>,
}

/// The totals of a node; `own` is attributed to the program that executes the node.
#[derive(Debug, Clone, Default)]
struct Tally {
    own: Counts,
    programs: BTreeMap<String, Counts>,
    detached: u64,
    loads: u64,
    misses: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, other: &Tally, times: u64) -> Option<()> {
        sum(&mut self.own, &other.own, times)?;
        for (name, counts) in &other.programs {
            sum(self.programs.entry(name.clone()).or_default(), counts, times)?;
        }
        self.detached = self.detached.checked_add(other.detached.checked_mul(times)?)?;
        self.loads = self.loads.checked_add(other.loads.checked_mul(times)?)?;
        for (directory, count) in &other.misses {
            let before = self.misses.entry(directory.clone()).or_default();
            *before = before.checked_add(count.checked_mul(times)?)?;
        }
        Some(())
    }

    /// A process that executes `program` and then performs the work counted in `inside`.
    fn executed(program: &Program, inside: &Tally) -> Option<Tally> {
        let mut tally = Tally::default();
        tally.add(inside, 1)?;
        let own = std::mem::take(&mut tally.own);
        let counts = tally.programs.entry(base_name(program.name()).to_owned()).or_default();
        sum(counts, &own, 1)?;
        sum(counts, &Counts { execs: 1, processes: 1, threads: 0 }, 1)?;
        Some(tally)
    }

    fn tasks(&self) -> Option<u64> {
        self.programs.values().chain([&self.own]).try_fold(0_u64, |sum, counts| {
            sum.checked_add(counts.processes)?.checked_add(counts.threads)
        })
    }
}

fn sum(into: &mut Counts, from: &Counts, times: u64) -> Option<()> {
    into.execs = into.execs.checked_add(from.execs.checked_mul(times)?)?;
    into.processes = into.processes.checked_add(from.processes.checked_mul(times)?)?;
    into.threads = into.threads.checked_add(from.threads.checked_mul(times)?)?;
    Some(())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Nodes refer only to earlier ones, so a single pass in order counts all.
fn count_nodes(plan: &Plan) -> Option<Vec<Tally>> {
    let mut tallies: Vec<Tally> = Vec::with_capacity(plan.nodes.len());
    for steps in &plan.nodes {
        let mut tally = Tally::default();
        for step in steps {
            count_step(&mut tally, step, &tallies)?;
        }
        // Stops long before an overflow.
        if tally.tasks()? > MOST_TASKS {
            return None;
        }
        tallies.push(tally);
    }
    Some(tallies)
}

fn count_step(tally: &mut Tally, step: &Step, nodes: &[Tally]) -> Option<()> {
    match step {
        Step::Fork(NodeId(node)) => {
            tally.own.processes = tally.own.processes.checked_add(1)?;
            tally.add(nodes.get(*node)?, 1)
        }
        Step::Forks(count, _) => {
            tally.own.processes = tally.own.processes.checked_add(*count)?;
            Some(())
        }
        Step::Threads(count, _, _) | Step::ThreadEvents(count) => {
            tally.own.threads = tally.own.threads.checked_add(*count)?;
            Some(())
        }
        Step::Spawn(exec) => tally.add(&count_exec(exec, nodes)?, 1),
        Step::Spawns(count, _, exec) => tally.add(&count_exec(exec, nodes)?, *count),
        Step::Detach(exec) => {
            // Also counts the intermediate process, which exits immediately.
            tally.own.processes = tally.own.processes.checked_add(1)?;
            tally.detached = tally.detached.checked_add(1)?;
            tally.add(&count_exec(exec, nodes)?, 1)
        }
        Step::Load(_) => {
            tally.loads = tally.loads.checked_add(1)?;
            Some(())
        }
        Step::Miss(directory, count) => {
            let before = tally.misses.entry(directory.clone()).or_default();
            *before = before.checked_add(*count)?;
            Some(())
        }
        _ => Some(()),
    }
}

fn count_exec(exec: &Exec, nodes: &[Tally]) -> Option<Tally> {
    let nothing = Tally::default();
    let inside = |node: Option<NodeId>| match node {
        Some(NodeId(node)) => nodes.get(node),
        None => Some(&nothing),
    };
    if let Program::Own(_) = exec.program {
        return Tally::executed(&exec.program, inside(exec.node)?);
    }
    let mut started = Tally::default();
    for start in &exec.starts {
        started.add(&Tally::executed(&start.program, inside(start.node)?)?, start.times)?;
    }
    Tally::executed(&exec.program, &started)
}

impl Plan {
    /// The declaration of what a recording of it must show.
    pub fn declare(&self) -> Result<Declaration, PlanError> {
        Declaration::of(self)
    }
}

impl Declaration {
    pub(crate) fn of(plan: &Plan) -> Result<Self, PlanError> {
        Self::count(plan).ok_or(PlanError::TooMany { what: "tasks", most: MOST_TASKS })
    }

    fn count(plan: &Plan) -> Option<Self> {
        let nodes = count_nodes(plan)?;
        let root = count_exec(&plan.root, &nodes)?;
        let mut tally = Tally::executed(&Program::Own(SUPERVISOR.into()), &Tally::default())?;
        tally.add(&root, 1)?;
        if tally.tasks()? > MOST_TASKS {
            return None;
        }
        let mut failed_lookups = Vec::new();
        for directory in plan.libraries.iter().flat_map(|libraries| libraries.in_vain()) {
            let directory = directory.clone();
            let count = tally.loads;
            failed_lookups.push(FailedLookups {
                family: "open",
                directory,
                prefix: "libO2",
                count,
            });
        }
        for (directory, count) in &tally.misses {
            failed_lookups.push(FailedLookups {
                family: "open",
                directory: directory.trim_start_matches("@work@/").to_owned(),
                prefix: "libMissing",
                count: *count,
            });
        }
        let total = |of: fn(&Counts) -> u64| tally.programs.values().map(of).sum();
        Some(Self {
            scenario: plan.name.clone(),
            scale: plan.request.scale,
            workers: plan.request.workers,
            seed: plan.request.seed,
            processes: total(|counts| counts.processes),
            threads: total(|counts| counts.threads),
            execs: total(|counts| counts.execs),
            detached: tally.detached,
            programs: tally.programs,
            failed_lookups,
            events: plan.events.as_ref().map(|events| DeclaredEvents {
                total: events.total,
                per_worker: events.per_worker.clone(),
            }),
            phases: plan.phases.clone(),
        })
    }
}
