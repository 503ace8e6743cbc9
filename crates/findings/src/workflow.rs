//! What the steps of a workflow read, wrote and needed, for the program that runs it.

use std::collections::{BTreeMap, BTreeSet};

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
