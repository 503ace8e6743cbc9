//! What the steps of a workflow read, wrote and needed, for the program that runs it.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_wire::Outcome;

use crate::Figures;

/// What the steps of a workflow read, wrote and needed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkflowUse {
    /// Process id of what started the steps; 0 if that is not known.
    pub runner_pid: i32,
    /// Names of all steps.
    pub steps: BTreeSet<String>,
    /// Names of the steps that wrote a file, by its path below the directory of the job.
    pub written_by: BTreeMap<String, BTreeSet<String>>,
    /// The same for those that read it.
    pub read_by: BTreeMap<String, BTreeSet<String>>,
    /// What the steps of each group needed.
    pub needed: BTreeMap<String, Vec<StepNeed>>,
}

/// What a step needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepNeed {
    /// Wall time.
    pub wall_ns: u64,
    /// Mean number of CPUs it used; `None` if that is not known.
    pub cores: Option<f64>,
    /// Largest sum of the PSS of its processes at one time; `None` if memory was not read.
    pub peak_pss_bytes: Option<u64>,
}

/// Which steps, or groups of them, read what others write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepGraph {
    /// Names, and the number of steps of each.
    pub nodes: Vec<(String, u64)>,
    /// Lines between them.
    pub edges: Vec<StepEdge>,
    /// True if nodes are groups: there are too many steps for a picture.
    pub is_of_groups: bool,
}

/// A node that reads what another one writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEdge {
    /// Index of the node that writes.
    pub writer: usize,
    /// Index of the node that reads.
    pub reader: usize,
    /// Number of files, of pairs of steps in all.
    pub files: u64,
    /// True if the one that reads is not declared to wait, of one pair at least.
    pub is_missing: bool,
}

/// What a step did and used, with all that it started.
#[derive(Debug, Clone, PartialEq)]
pub struct StepUsage {
    /// Its name.
    pub name: String,
    /// The group that it is of.
    pub group: String,
    /// The coordinator whose rule names it; empty otherwise.
    pub coordinator: String,
    /// The directory in which it begins; empty if that is not known.
    pub directory: String,
    /// Process id of its first process.
    pub pid: i32,
    /// True if that had ended when the recording did.
    pub has_ended: bool,
    /// How; `None` if that is not known.
    pub outcome: Option<Outcome>,
    /// Its begin since 1970.
    pub begin_unix_ns: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// Processes.
    pub processes: u64,
    /// Figures of all of them.
    pub figures: Figures,
    /// Largest sum at one time of the peak RSS of its processes; `None` if that is not known.
    pub peaks_at_once_bytes: Option<u64>,
    /// Largest sum at one time of RSS; `None` if memory was not read.
    pub peak_rss_bytes: Option<u64>,
    /// Of PSS.
    pub peak_pss_bytes: Option<u64>,
    /// Of USS.
    pub peak_uss_bytes: Option<u64>,
}

/// The name of a group without the numbers of its members: each is a `#`.
pub fn without_numbers(name: &str) -> String {
    let mut shape = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            _ => shape.push(letter),
        }
    }
    shape
}
