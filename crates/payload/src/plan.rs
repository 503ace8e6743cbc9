//! The plan of a run: the steps of all its processes, fixed in advance.

use std::collections::BTreeSet;

use crate::error::{MOST_TASKS, PlanError};
use crate::step::{Exec, NodeId, Program, Step};

/// Rounds of the actor's loop per unit of work: about 0.1 ms at 3 GHz.
pub(crate) const ROUNDS_PER_UNIT: f64 = 40_000.0;

/// Reads of 64 KiB from /dev/zero per unit of work in the kernel, which take about as long.
pub(crate) const READS_PER_UNIT: f64 = 80.0;

/// Limit for everything else that is counted in advance: events, steps.
pub(crate) const MOST_ITEMS: u64 = 1_000_000;

/// The requested size of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Factor for counts; 1 corresponds to the scenario's parameters.
    pub scale: f64,
    /// Concurrent tasks, workers or threads, depending on the scenario.
    pub workers: u32,
    /// Seed for event durations.
    pub seed: u64,
    /// Factor for CPU work; does not affect counts.
    pub work: f64,
}

impl Request {
    /// Rejects values out of range.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let within = |name, value: f64, sound: bool, range| {
            if sound { Ok(()) } else { Err(PlanError::Outside { name, value, range }) }
        };
        let (scale, workers, work) = (self.scale, self.workers, self.work);
        within("scale", scale, scale > 0.0 && scale <= 100.0, "above 0, at most 100")?;
        let sound = (1..=1024).contains(&workers);
        within("the number of workers", f64::from(workers), sound, "from 1 to 1024")?;
        within("the work factor", work, (0.0..=1000.0).contains(&work), "from 0 to 1000")
    }

    /// Scales a count given for scale 1: proportional, and at least one.
    pub(crate) fn scaled(&self, what: &'static str, count: u64) -> Result<u64, PlanError> {
        let scaled = (count as f64 * self.scale).round().max(1.0);
        if scaled <= MOST_TASKS as f64 {
            Ok(scaled as u64)
        } else {
            Err(PlanError::TooMany { what, most: MOST_TASKS })
        }
    }

    /// Rounds of the loop for this many units of work.
    pub(crate) fn rounds(&self, units: f64) -> u64 {
        (units * ROUNDS_PER_UNIT * self.work) as u64
    }

    /// Reads for this many units of work in the kernel.
    pub(crate) fn reads(&self, units: f64) -> u64 {
        (units * READS_PER_UNIT * self.work) as u64
    }
}

/// Rejects counts above a million.
pub(crate) fn bounded(what: &'static str, count: Option<u64>) -> Result<u64, PlanError> {
    match count {
        Some(count) if count <= MOST_ITEMS => Ok(count),
        _ => Err(PlanError::TooMany { what, most: MOST_ITEMS }),
    }
}

/// The loader's search path and libraries. Directories are relative to the work directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The directories in LD_LIBRARY_PATH; all of them exist.
    pub search: Vec<String>,
    /// The directory that contains the libraries.
    pub directory: String,
    /// A directory of symbolic links to all of them.
    pub links: Option<String>,
    /// The file names.
    pub names: Vec<String>,
}

impl Libraries {
    /// Directories that the loader searches without success for each library.
    pub fn in_vain(&self) -> &[String] {
        let found = |directory: &String| {
            *directory == self.directory || self.links.as_ref() == Some(directory)
        };
        let first = self.search.iter().position(found).unwrap_or(self.search.len());
        &self.search[..first]
    }
}

/// The distribution of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Events of all processes together.
    pub total: u64,
    /// Events of each worker, in order of rank, if they do not depend on relative speed.
    pub per_worker: Option<Vec<u64>>,
    /// Log files that contain the number of processed events, relative to the working directory of
    /// the run.
    pub logs: Vec<String>,
}

/// A phase of the run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Phase {
    /// The name of the phase.
    pub name: &'static str,
    /// The event that begins it.
    pub from: &'static str,
    /// The event that ends it.
    pub to: &'static str,
}

/// The plan of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// The requested size.
    pub request: Request,
    /// The steps of the processes. A node refers only to earlier nodes.
    pub(crate) nodes: Vec<Vec<Step>>,
    /// The first process.
    pub(crate) root: Exec,
    /// Files of the run: path relative to the work directory, and contents.
    pub(crate) files: Vec<(String, String)>,
    /// Directories to create, relative to the work directory.
    pub(crate) directories: Vec<String>,
    /// Place of libraries, if any are loaded.
    pub libraries: Option<Libraries>,
    /// Environment variables, except those for the libraries.
    pub(crate) environment: Vec<(String, String)>,
    /// Events, if the scenario has any.
    pub events: Option<Events>,
    /// The sequence of phases.
    pub phases: Vec<Phase>,
}

impl Plan {
    /// The nodes in the actor's input format.
    pub(crate) fn scripts<'a>(
        &'a self,
        path_of: &'a dyn Fn(&Program) -> String,
    ) -> impl Iterator<Item = String> + 'a {
        self.nodes.iter().map(move |steps| {
            steps.iter().fold(String::new(), |text, step| text + &step.line(path_of) + "\n")
        })
    }

    /// Every program that is executed or started by a shell.
    pub(crate) fn programs(&self) -> BTreeSet<&Program> {
        let execs = self.nodes.iter().flatten().filter_map(|step| match step {
            Step::Spawn(exec) | Step::Detach(exec) | Step::Spawns(_, _, exec) => Some(exec),
            _ => None,
        });
        execs
            .chain([&self.root])
            .flat_map(|exec| {
                exec.starts.iter().map(|started| &started.program).chain([&exec.program])
            })
            .collect()
    }
}

/// Collects nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes(pub(crate) Vec<Vec<Step>>);

impl Nodes {
    pub(crate) fn add(&mut self, steps: Vec<Step>) -> NodeId {
        self.0.push(steps);
        NodeId(self.0.len() - 1)
    }
}

/// An exec of the actor under this name.
pub(crate) fn own(
    name: impl Into<String>,
    arguments: impl IntoIterator<Item = impl Into<String>>,
    node: NodeId,
) -> Exec {
    Exec {
        program: Program::Own(name.into()),
        arguments: arguments.into_iter().map(Into::into).collect(),
        node: Some(node),
        starts: Vec::new(),
    }
}
