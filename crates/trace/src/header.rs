//! Metadata of a trace: the header before the records, the trailer after them.

use std::collections::BTreeMap;

use proctrace_wire::{Kind, LossReason, Outcome, Quantity};
use serde::{Deserialize, Serialize};

use crate::knowledge::Knowledge;

/// Maximum size of a header; larger ones are refused before anything is allocated. A header contains the command line,
/// which the kernel limits to a quarter of the stack (2 MiB, 6 MiB with an unlimited one).
pub(crate) const HEADER_BYTES_MAX: usize = 16 << 20;

/// Variables by which batch systems tell a job who it is; docs/fleet.md says what is made of them. They are the same for
/// all processes of a job, so they are kept in the header and not with each exec.
pub const JOB_VARIABLES: &[&str] = &[
    // Slurm: sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_JOB_PARTITION",
    "SLURM_CLUSTER_NAME",
    "SLURM_JOB_USER",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPUS_ON_NODE",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_END_TIME",
    // PBS: qsub(1B) of OpenPBS.
    "PBS_JOBID",
    "PBS_QUEUE",
    "PBS_SERVER",
    "PBS_O_LOGNAME",
    "NCPUS",
    // HTCondor: "Environment variables for jobs" of its manual. What begins with CONDOR_ is from that file.
    "_CONDOR_JOB_AD",
    "_CONDOR_SLOT",
    "OMP_NUM_THREADS",
    "CONDOR_ID",
    "CONDOR_REQUEST_CPUS",
    "CONDOR_REQUEST_MEMORY",
    // PanDA and its pilot.
    "PandaID",
    "PANDAID",
    "PanDA_TaskID",
    "PANDA_RESOURCE",
    "PILOT_SITENAME",
    "ATHENA_CORE_NUMBER",
    // DIRAC: the job wrapper and the pilot.
    "DIRACJOBID",
    "JOBID",
    "DIRACSITE",
    "DIRAC_SITE",
    "DIRAC_PROCESSORS",
    // AliEn and JAliEn: the job agent.
    "ALIEN_PROC_ID",
    "ALIEN_SITE",
    "ALIEN_USER",
    "CE_NAME",
    "CPUCores",
    // GitHub Actions: "Variables reference" of its documentation.
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_JOB",
    "GITHUB_WORKFLOW",
    "GITHUB_REPOSITORY",
    "GITHUB_SHA",
    "GITHUB_ACTOR",
    // GitLab CI: "Predefined CI/CD variables reference".
    "CI_JOB_ID",
    "CI_JOB_NAME",
    "CI_PROJECT_PATH",
    "CI_COMMIT_SHA",
    "CI_SERVER_HOST",
    "GITLAB_USER_LOGIN",
    // Jenkins: "Using environment variables" of its handbook.
    "JENKINS_URL",
    "JOB_NAME",
    "BUILD_NUMBER",
    "NODE_NAME",
    "GIT_COMMIT",
    // All: environ(7).
    "LOGNAME",
    "USER",
];

/// Scope in which one process stands for a whole tree: its source read sums over all processes, as prmon does.
pub const SCOPE_TREE: &str = "tree";

/// Environment variables that are recorded unless others are asked for: those that searches go by, and those that name
/// steps.
pub const ENV_NAMES: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "ROOTSYS",
    "PROCTRACE_STEP",
    "PROCTRACE_STEP_GROUP",
    "TRACEPARENT",
];

/// Description of where and how a recording was made. Strings that are really bytes (arguments,
/// paths) are escaped by `proctrace_wire::escape`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Layout of the records.
    pub wire_version: u32,
    /// Version of the recorder.
    pub recorder: String,
    /// The source of the records: "ebpf".
    pub backend: String,
    /// The launched command and its arguments; empty if none was launched.
    pub command: Vec<String>,
    /// The requested scope: "command", "pids" or "system"; of some imported logs [`SCOPE_TREE`].
    pub scope: String,
    /// True if recording was limited to processes that the recording user could trace. False in
    /// older traces, whose recorders did not check.
    #[serde(default)]
    pub restricted: bool,
    /// The cgroup whose members were also recorded.
    pub cgroup: Option<String>,
    /// The directory in which it was launched.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine: "x86_64".
    pub machine: String,
    /// CPUs the payload may use.
    pub cpus: u32,
    /// Size of a page.
    pub page_bytes: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Its processors. Nothing is known of them in traces made before version 6 of the records.
    #[serde(default)]
    pub processor: Processor,
    /// Real-time clock at the start, since 1970.
    pub started_unix_ns: u64,
    /// CLOCK_BOOTTIME, the clock of the records, at the same moment.
    pub started_ns: u64,
    /// The shortest pause between passes of samples.
    pub interval_ns: u64,
    /// Interval between memory readings of processes; None: none.
    pub memory_interval_ns: Option<u64>,
    /// Size of each ring buffer.
    pub ring_bytes: u64,
    /// Behaviour when a ring is nearly full: "drop" or "block".
    pub on_full: String,
    /// Families of calls whose failures are recorded: "open", "stat"...
    pub misses: Vec<String>,
    /// True if successful opens are recorded. False in traces made before they could be.
    #[serde(default)]
    pub opens: bool,
    /// On average one of this many look-ups is timed; None: none.
    #[serde(default)]
    pub lookups_timed_one_in: Option<u32>,
    /// Times off the CPU are recorded if they are at least this long; None: none.
    #[serde(default)]
    pub waits_min_ns: Option<u64>,
    /// Environment variables that are recorded.
    pub env_names: Vec<String>,
    /// Variables of [`JOB_VARIABLES`] that the command was given; empty if a running process is
    /// recorded, with `--no-env`, and in traces made before they were recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job: BTreeMap<String, String>,
    /// Length of a scheduler tick in nanoseconds; None in traces made before it was recorded.
    #[serde(default)]
    pub tick_ns: Option<u64>,
    /// The hooks in use.
    pub hooks: Vec<Hook>,
    /// Knowledge of each quantity, by its name (see [`Quantity`]); empty in traces
    /// made before it was recorded. Names from other versions are preserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub knowledge: BTreeMap<String, Knowledge>,
}

impl Header {
    /// Knowledge of a quantity in the recording: as stated in the header, or, for traces made
    /// before it was recorded, derived from the recorder's options.
    pub fn knows(&self, quantity: Quantity) -> Knowledge {
        self.knowledge.get(quantity.name()).cloned().unwrap_or_else(|| self.was_asked_for(quantity))
    }

    /// Quantities that the recording does not know, each with the reason: those of which that is known, and what follows
    /// from them.
    pub fn absent(&self) -> BTreeMap<Quantity, String> {
        let reason = |quantity| match self.knows(quantity) {
            Knowledge::Absent { reason } => Some((quantity, reason)),
            Knowledge::Exact | Knowledge::Estimate { .. } => None,
        };
        let mut absent: BTreeMap<_, _> = Quantity::ALL.iter().copied().filter_map(reason).collect();
        // Without times there are no durations.
        if let Some(reason) = absent.get(&Quantity::Times).cloned() {
            for quantity in [
                Quantity::Cpu,
                Quantity::RunDelay,
                Quantity::Samples,
                Quantity::Memory,
                Quantity::Waits,
                Quantity::LookupTimes,
            ] {
                absent.entry(quantity).or_insert_with(|| reason.clone());
            }
        }
        // Without CPU time there is nothing to split.
        if let Some(reason) = absent.get(&Quantity::Cpu).cloned() {
            absent.insert(Quantity::Split, reason);
        }
        absent
    }

    /// Completes the knowledge of all quantities: as stated by the source, or else derived from the
    /// options.
    #[must_use]
    pub fn with_knowledge(mut self) -> Self {
        for quantity in Quantity::ALL {
            let knowledge = self.knows(quantity);
            self.knowledge.insert(quantity.name().to_owned(), knowledge);
        }
        self
    }

    /// Marks all quantities as absent.
    pub fn knows_nothing(&mut self, reason: &str) {
        for quantity in Quantity::ALL {
            self.knowledge.insert(quantity.name().to_owned(), Knowledge::absent(reason));
        }
    }

    /// Knowledge of a quantity by a recorder that gets everything from the kernel, derived from its
    /// options.
    pub fn was_asked_for(&self, quantity: Quantity) -> Knowledge {
        if let Some(family) = quantity.family() {
            return match self.misses.iter().any(|wanted| wanted == family) {
                true => Knowledge::Exact,
                false => Knowledge::absent("left out by --misses"),
            };
        }
        match quantity {
            Quantity::Split => Knowledge::Estimate {
                method: "exact CPU time, split in the ratio of scheduler ticks, pooled by program"
                    .into(),
            },
            Quantity::LookupTimes => match self.lookups_timed_one_in {
                Some(one_in) => {
                    Knowledge::Estimate { method: format!("one look-up in {one_in} is timed") }
                }
                None => Knowledge::absent("look-ups were not timed"),
            },
            Quantity::OpenedFiles if !self.opens => Knowledge::absent("recorded without --opens"),
            Quantity::FileSizes if !self.opens => Knowledge::absent("recorded without --opens"),
            Quantity::FileSizes if self.wire_version < 9 => {
                Knowledge::absent("recorded by a version without sizes of files")
            }
            Quantity::Mounts if self.wire_version < 4 => {
                Knowledge::absent("recorded by a version without mount tables")
            }
            Quantity::Waits if self.waits_min_ns.is_none() => {
                Knowledge::absent("recorded without --waits")
            }
            Quantity::Signals if self.wire_version < 5 => {
                Knowledge::absent("recorded by a version without signals")
            }
            Quantity::Memory if self.memory_interval_ns.is_none() => {
                Knowledge::absent("recorded without --memory")
            }
            Quantity::Environment if self.env_names.is_empty() => {
                Knowledge::absent("left out by --no-env")
            }
            _ => Knowledge::Exact,
        }
    }
}

/// The processors of the machine, as far as it tells; unlike [`Header::cpus`], all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// Model name.
    pub model: Option<String>,
    /// Logical CPUs that are online.
    pub cpus: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Cores of each socket.
    pub cores_per_socket: Option<u32>,
    /// Threads of each core.
    pub threads_per_core: Option<u32>,
}

/// An event and the hook that reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The event: "fork".
    pub event: String,
    /// The hook: "tp_btf/task_newtask".
    pub hook: String,
}

/// End of a recording, with its totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    /// CLOCK_BOOTTIME at the end of the recording.
    pub ended_ns: u64,
    /// The reason it ended.
    pub ended: Ended,
    /// Status and usage of the payload; None if it was still running.
    pub payload: Option<PayloadUsage>,
    /// Number of traced tasks.
    pub tasks: u64,
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// All losses; empty if complete.
    pub losses: Vec<LossCount>,
    /// The kernel's accounting of the recording's own cgroup, if it had one.
    pub cgroup: Option<CgroupUsage>,
    /// Work of all CPUs of the machine meanwhile; None in older traces, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Usage of the recorder itself.
    pub recorder: RecorderUsage,
    /// The recorder's programs in the kernel. Empty in older traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Variables of [`JOB_VARIABLES`] that were found while it was made: those of a job that was there
    /// before its recorder. See [`Header::job`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job: BTreeMap<String, String>,
    /// Time that tasks waited for the recorder, if they were made to (`on_full`); none if they never
    /// did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<HeldUp>,
    /// Facts that a job of a node cannot choose itself; None for other recordings, and in older
    /// traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_node: Option<OfNode>,
}

/// Work of all CPUs of a machine in a time, as the kernel counts it, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineUse {
    /// Time in which they were not idle, in sum, with that which a host gave to other virtual machines.
    pub busy_ns: u64,
    /// All of it.
    pub all_ns: u64,
    /// CPUs that were online.
    pub cpus: u32,
}

/// Waits of tasks for the recorder, while its buffers were nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldUp {
    /// Number of waits.
    pub times: u64,
    /// Their sum: part of the system time of those tasks.
    pub total_ns: u64,
}

/// Facts that the recorder of a node found out about a job, other than from what the job says of
/// itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfNode {
    /// The user of its processes: the first real user other than root, or root if there was no other.
    pub uid: Option<u32>,
    /// Name of that user, where the node knows one.
    pub user: Option<String>,
    /// True if it may have run before it was recorded.
    pub began_before: bool,
    /// CPU time that its cgroup had used by then.
    pub before_cpu_ns: Option<u64>,
}

/// A program in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Instructions processed by the verifier; 0 if the kernel does not report them.
    pub verified_instructions: u32,
    /// Number of runs; 0 unless the sysctl kernel.bpf_stats_enabled was 1.
    pub runs: u64,
    /// Total time of its runs; 0 likewise.
    pub run_ns: u64,
}

/// CPU time of a cgroup, from its cpu.stat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupUsage {
    /// The cgroup.
    pub path: String,
    /// Total.
    pub usage_ns: u64,
    /// Time in user mode.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
}

/// The reason a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every task of the tree had exited.
    TreeExited,
    /// The command had exited; its remaining descendants were not, or no longer, waited for.
    RootExited,
    /// The recorder was asked to stop.
    Interrupted,
    /// The requested duration had elapsed.
    TimeOver,
}

/// The payload's status and usage as reported by wait4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadUsage {
    /// Outcome of the command.
    pub outcome: Outcome,
    /// CLOCK_BOOTTIME at its exit.
    pub exited_ns: u64,
    /// User time of it and of all its reaped descendants (RUSAGE_CHILDREN).
    pub user_ns: u64,
    /// System time likewise.
    pub system_ns: u64,
    /// Largest peak RSS of any of them.
    pub maxrss_bytes: u64,
}

/// A number of lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LossCount {
    /// The kind of record.
    pub kind: Kind,
    /// Reason of the loss.
    pub reason: LossReason,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Number of records.
    pub count: u64,
}

/// Usage of the recorder itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderUsage {
    /// User time.
    pub user_ns: u64,
    /// System time.
    pub system_ns: u64,
    /// Peak RSS.
    pub maxrss_bytes: u64,
    /// CPU time used before the recording began: loading the programs. 0 in older traces.
    #[serde(default)]
    pub loading_ns: u64,
}
