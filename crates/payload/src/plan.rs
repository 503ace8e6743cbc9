//! What all processes of a run do, before any of them runs.

use std::collections::BTreeSet;

use crate::error::{MOST_TASKS, PlanError};
use crate::step::{Exec, NodeId, Program, Step};

/// Rounds of the actor's loop in a unit of work: about 0.1 ms at 3 GHz.
pub(crate) const ROUNDS_PER_UNIT: f64 = 40_000.0;

/// Reads of 64 KiB from /dev/zero in a unit of work in the kernel: about as long.
pub(crate) const READS_PER_UNIT: f64 = 80.0;

/// The most of anything else that is counted before it is made: events, steps.
pub(crate) const MOST_ITEMS: u64 = 1_000_000;

/// How large a scenario is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Counts are multiplied by this; 1 is what the scenario's figures are for.
    pub scale: f64,
    /// Tasks, workers or threads at a time, as the scenario says.
    pub workers: u32,
    /// Whence uneven event times come.
    pub seed: u64,
    /// CPU work is multiplied by this; counts are not.
    pub work: f64,
}

impl Request {
    /// Refuses what cannot be meant.
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

    /// A count of scale 1 at this scale: in proportion, and at least one.
    pub(crate) fn scaled(&self, what: &'static str, count: u64) -> Result<u64, PlanError> {
        let scaled = (count as f64 * self.scale).round().max(1.0);
        if scaled <= MOST_TASKS as f64 {
            Ok(scaled as u64)
        } else {
            Err(PlanError::TooMany { what, most: MOST_TASKS })
        }
    }

    /// Rounds of the loop for so many units of work.
    pub(crate) fn rounds(&self, units: f64) -> u64 {
        (units * ROUNDS_PER_UNIT * self.work) as u64
    }

    /// Reads for so many units of work in the kernel.
    pub(crate) fn reads(&self, units: f64) -> u64 {
        (units * READS_PER_UNIT * self.work) as u64
    }
}

/// Refuses more than a million of what is counted before it is made.
pub(crate) fn bounded(what: &'static str, count: Option<u64>) -> Result<u64, PlanError> {
    match count {
        Some(count) if count <= MOST_ITEMS => Ok(count),
        _ => Err(PlanError::TooMany { what, most: MOST_ITEMS }),
    }
}

/// Where the loader finds libraries. Directories are relative to the work directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Libraries {
    /// LD_LIBRARY_PATH. All of it exists.
    pub search: Vec<String>,
    /// The directory that has the libraries.
    pub directory: String,
    /// A directory of symbolic links to all of them.
    pub links: Option<String>,
    /// The files.
    pub names: Vec<String>,
}

impl Libraries {
    /// Directories that the loader looks into in vain for each library.
    pub fn in_vain(&self) -> &[String] {
        let found = |directory: &String| {
            *directory == self.directory || self.links.as_ref() == Some(directory)
        };
        let first = self.search.iter().position(found).unwrap_or(self.search.len());
        &self.search[..first]
    }
}

/// How events are shared out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Of all processes together.
    pub total: u64,
    /// Of each worker, in order of rank, where that does not depend on who is faster.
    pub per_worker: Option<Vec<u64>>,
    /// Log files with the line on events processed, relative to the working directory of the run.
    pub logs: Vec<String>,
}

/// A part of the run, and what begins and ends it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Phase {
    /// What is done in it.
    pub name: &'static str,
    /// What begins it.
    pub from: &'static str,
    /// What ends it.
    pub to: &'static str,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// What was asked for.
    pub request: Request,
    /// The steps of processes. A node refers to nodes before it only.
    pub(crate) nodes: Vec<Vec<Step>>,
    /// The first process.
    pub(crate) root: Exec,
    /// Files of the run: path relative to the work directory, and text.
    pub(crate) files: Vec<(String, String)>,
    /// Directories that must be there, relative to the work directory.
    pub(crate) directories: Vec<String>,
    /// Where libraries are, if any are loaded.
    pub libraries: Option<Libraries>,
    /// Variables of the environment, beside those of the libraries.
    pub(crate) environment: Vec<(String, String)>,
    /// Events, if the scenario has any.
    pub events: Option<Events>,
    /// What comes after what.
    pub phases: Vec<Phase>,
}

impl Plan {
    /// The nodes, as the actor reads them.
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

/// An exec of the actor under a name.
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
