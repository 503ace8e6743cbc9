//! Results of an analysis as plain data: the interface between analysis and rendering.
//!
//! Nothing here depends on how a value was computed. Nothing draws or writes either, but what all
//! renderings have in common is decided here: how a number reads ([`figure()`], [`count()`]), which
//! columns a text has room for ([`Column::detail`]), whether a chart's axis is logarithmic. Every
//! number has its unit in its name. Names and paths are text as `proctrace_wire::escape` produces
//! it. `proctrace report --json` serialises [`Findings`] as it is, so field names are a public
//! interface: fields may be added, but not renamed.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advice;
mod chart;
mod ends;
mod farm;
mod figure;
mod gantt;
mod libs;
mod metric;
mod number;
mod page;
mod path;
mod phase;
mod prmon;
mod process;
mod request;
mod rows;
mod series;
mod table;
mod timeline;
mod tree;
mod workflow;

pub use advice::{
    Advice, Advised, AdvisedStep, Concerned, Explained, ExplainedProcess, Gain, Judged, Left,
    Observed, ObservedAdvice, Outturn, ScriptLine, Taken, Together, Verdict, WaitedFor,
};
pub use chart::{
    Axis, Bars, Chart, ChartBody, Estimate, Flame, HeatMap, Histogram, IntervalGroup, Intervals,
    Lines, Point, Scatter, Step, Waterfall,
};
pub use ends::{EndStep, Ends, FatalSignal, LastFailed, ProgramEnd};
pub use farm::{
    DanglingLink, Farm, FarmCandidate, FarmConflict, FarmLink, KeptEntry, Trial, TrialRun,
};
pub use figure::{Figure, Figures, Topic};
pub use gantt::{Bar, Gantt, GanttOrder, GanttView, Lane, PathPiece, Strip};
pub use libs::{
    LibrarySearch, Libs, LookupCause, LookupCost, LookupPlace, NotModelled, ProgramSearch, Remedy,
};
pub use metric::{FAMILIES, Kind, Metric, MetricFamily, Metrics, Unknown, Worse};
pub use number::{bytes, count, counted, figure, sparkline, time};
pub use page::{LeftOut, PackedColumn, PackedTable, PageData, PageStep, PageStrip};
pub use path::{CriticalPath, PathPhase, PathProgram, PathWait};
pub use phase::{MarkedPhase, PhaseMark};
pub use prmon::{Prmon, PrmonColumn, PrmonMachine};
pub use process::{
    Candidate, ChildGroup, Command, MemoryAt, MissedName, OwnStep, PathShare, PathStretch,
    ProcessDetails, ProgramDetails, ReceivedSignal, Relative, Shown, Slow, Spread, WaitGroup,
};
pub use proctrace_wire::{Outcome, signal_name};
pub use request::{MemoryFrom, Mismatch, Request, Resource};
pub use rows::{Rows, RowsColumn, RowsValues};
pub use series::{Mark, Series};
pub use table::{Cell, Column, Table, Unit, Values};
pub use timeline::{
    Timeline, TimelineCounter, TimelineForker, TimelineItem, TimelineParts, TimelinePhase,
    TimelineProcess, TimelineRun, TimelineStack, TimelineStep, TimelineThread, TimelineWait,
};
pub use tree::{Alive, AliveProcess, ProcessTree, TreeRow};
pub use workflow::{StepEdge, StepGraph, StepNeed, StepUsage, WorkflowUse, without_numbers};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Serializes what is shared as what it is.
fn shared<T: Serialize, S: Serializer>(it: &Option<Arc<T>>, to: S) -> Result<S::Ok, S::Error> {
    it.as_deref().serialize(to)
}

/// All findings of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Description of the recording.
    pub run: Run,
    /// Trustworthiness of the values.
    pub health: Health,
    /// Knowledge of each quantity in the recording. An unknown value is None or absent in all other
    /// fields, never 0.
    pub known: Vec<Known>,
    /// The key figures.
    pub summary: Summary,
    /// Processes and threads by the program they ran, the most numerous first.
    pub categories: Vec<Category>,
    /// Process creation by parent and child program, the most frequent first.
    pub spawners: Vec<Spawner>,
    /// Failed look-ups by directory, call and errno, the most frequent first.
    pub lookups: Vec<DirectoryMisses>,
    /// Ends of processes: failures and deaths by signal, of which there may be a million. Shared with who has found them.
    #[serde(serialize_with = "shared")]
    pub ends: Option<Arc<Ends>>,
    /// Processes that outlived their parent, the largest CPU time first.
    pub detached: Vec<Detached>,
    /// Memory over time, if it was sampled.
    pub memory: Option<Memory>,
    /// Division of the wall time; None without a launched command, or if waits were not recorded.
    pub critical_path: Option<CriticalPath>,
    /// Sums over the times between the marks of the payload, in order of time; empty without marks,
    /// None if they are not known.
    pub phases: Option<Vec<MarkedPhase>>,
    /// Blind spots: what the recording could not observe.
    pub blind_spots: Vec<BlindSpot>,
    /// Correlations between quantities over time.
    pub correlations: Correlations,
    /// The best advice, at most three pieces; None if the recording lacks what predictions need.
    pub advice: Option<Advised>,
}

/// Description of the recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The command and its arguments; empty if no command was launched.
    pub command: Vec<String>,
    /// The scope of the recording: "command", "pids", "system", or "tree" (see the header of traces).
    pub scope: String,
    /// The cgroup whose members were recorded in addition.
    pub cgroup: Option<String>,
    /// Initial working directory.
    pub cwd: String,
    /// Host name; empty if it is not known (null in JSON).
    #[serde(serialize_with = "null_if_not_known")]
    pub host: String,
    /// Kernel release; empty if it is not known.
    #[serde(serialize_with = "null_if_not_known")]
    pub kernel: String,
    /// Start time, in nanoseconds since 1970; 0 if it is not known.
    #[serde(serialize_with = "null_if_not_known")]
    pub started_unix_ns: u64,
    /// Outcome of the command; None if it was still running or the recording was cut short.
    pub outcome: Option<Outcome>,
    /// Number of CPUs available to it; 0 if it is not known.
    #[serde(serialize_with = "null_if_not_known")]
    pub cores: u32,
    /// Time from the start of the command to its own exit, or to the last record if that is unknown;
    /// None if the recording has no times.
    pub wall_ns: Option<u64>,
    /// Time from the start of the command to the last record: longer than `wall_ns` if descendants
    /// outlived the command. None if the recording has no times.
    pub recorded_ns: Option<u64>,
    /// The wait for processes that outlived the command; None if it is not noticeable.
    pub after: Option<After>,
}

/// The time between the command's own end and that of the recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct After {
    /// Length of that time.
    pub wait_ns: u64,
    /// The process for which the recording went on: of those that outlived their parent, the one that ended last, or was
    /// still alive.
    pub last: Option<Detached>,
    /// Number of others that outlived their parent and were alive at the command's end.
    pub others: u64,
}

/// Imported logs do not say on which machine they were made; a header has no other way to say that.
fn null_if_not_known<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Default + PartialEq,
    S: serde::Serializer,
{
    match *value == T::default() {
        true => serializer.serialize_none(),
        false => value.serialize(serializer),
    }
}

/// Trustworthiness of the values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// True if the recorder finished the trace.
    pub complete: bool,
    /// True if the recorder was still writing the trace when it was read, which makes it
    /// incomplete.
    pub recording_now: bool,
    /// Number of records lost during recording.
    pub lost: u64,
    /// Lost records by kind and reason.
    pub losses: Vec<Loss>,
    /// Descriptions of damage to the file.
    pub damage: Vec<String>,
    /// Consistency laws, each of which must hold.
    pub laws: Vec<Law>,
}

impl Health {
    /// True if all values are exact.
    pub fn is_good(&self) -> bool {
        self.complete && self.lost == 0 && self.damage.is_empty() && self.laws_hold()
    }

    /// True if no law that could be checked is violated.
    pub fn laws_hold(&self) -> bool {
        !self.laws.iter().any(Law::is_broken)
    }

    /// Number of laws that could be checked.
    pub fn laws_checked(&self) -> usize {
        self.laws.iter().filter(|law| law.holds.is_some()).count()
    }
}

/// Knowledge of one quantity in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// A stable name: "cpu", "lookups_open".
    pub quantity: &'static str,
    /// The level of knowledge.
    pub state: Knowledge,
    /// The estimation method, the reason it is only a bound, or the reason it is absent.
    pub why: Option<String>,
}

/// Levels of knowledge about a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Every value is exact.
    Exact,
    /// Every value is an estimate.
    Estimate,
    /// Records were lost, so the true value may be higher.
    LowerBound,
    /// The quantity is unknown.
    Absent,
}

/// A number of lost records of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The kind of record.
    pub kind: String,
    /// Reason of the loss.
    pub reason: String,
    /// Number of records lost.
    pub count: u64,
}

/// An invariant of every complete recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Law {
    /// A stable name.
    pub name: &'static str,
    /// The invariant in words.
    pub says: &'static str,
    /// True if it holds; None if it could not be checked.
    pub holds: Option<bool>,
    /// The reason it could not be checked.
    pub not_checked: Option<String>,
    /// The value that `found` must equal; None if unknown.
    pub expected: Option<f64>,
    /// The value found; None if unknown.
    pub found: Option<f64>,
    /// The unit of `expected` and `found`.
    pub unit: &'static str,
}

impl Law {
    /// True if it was checked and does not hold.
    pub fn is_broken(&self) -> bool {
        self.holds == Some(false)
    }
}

/// The key figures; None for quantities that the recording does not know (see [`Known`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// CPU time of all tasks, exact.
    pub cpu_ns: Option<u64>,
    /// The part of it in user mode: an estimate from `ticks`.
    pub user_ns: Option<u64>,
    /// The part of it in the kernel, likewise estimated.
    pub system_ns: Option<u64>,
    /// Scheduler ticks that hit any task: the sample size n of that estimate.
    pub ticks: Option<f64>,
    /// Lower bound of the 95 % interval of the system-time share, in percent.
    pub system_low_percent: Option<f64>,
    /// Upper bound of the same interval.
    pub system_high_percent: Option<f64>,
    /// System time according to wait(2), and hence time(1); None if the command was not waited for.
    /// An underestimate where most processes are shorter than a tick.
    pub waited_system_ns: Option<u64>,
    /// CPU time divided by recorded time times cores, in percent.
    pub efficiency_percent: Option<f64>,
    /// The share of the machine's CPU time that others used meanwhile, in percent: other jobs, interrupts, threads of the
    /// kernel, and what a host gave to other virtual machines. Counted in clock ticks; None in recordings shorter than a
    /// second.
    pub others_percent: Option<f64>,
    /// CPU time of the command according to wait(2), and hence time(1); None if it was not waited
    /// for.
    pub waited_cpu_ns: Option<u64>,
    /// CPU time of processes whose parent had exited or never waited for them.
    pub unwaited_cpu_ns: Option<u64>,
    /// Processes that were still running when their parent exited.
    pub detached_processes: Option<u64>,
    /// CPU time of the detached processes.
    pub detached_cpu_ns: Option<u64>,
    /// Processes, including the command.
    pub processes: Option<u64>,
    /// Threads, not counting the first thread of each process.
    pub threads: Option<u64>,
    /// Successful execs.
    pub execs: Option<u64>,
    /// Failed execs.
    pub execs_failed: Option<u64>,
    /// Number of these that were tries along a list of directories, such as PATH: the same process tried the same
    /// name in another one next, or before.
    pub execs_searched: Option<u64>,
    /// Peak number of simultaneous tasks.
    pub peak_tasks: Option<u64>,
    /// Peak number of simultaneous processes.
    pub peak_processes: Option<u64>,
    /// Peak number of running or runnable tasks in a sample; None without samples.
    pub peak_running: Option<u64>,
    /// Median process lifetime; None if no process has ended.
    pub median_life_ns: Option<u64>,
    /// All failed path look-ups, including `lookups_of_no_link`.
    pub lookups_failed: Option<u64>,
    /// The part of `lookups_failed` that are readlinks of existing files that are not links:
    /// realpath(3) resolves paths this way, so they are not wasted. Excluded from the counts by
    /// family and by directory.
    pub lookups_of_no_link: Option<u64>,
    /// The remaining failures, for paths that do not exist: "failed look-ups" in reports and
    /// metrics.
    pub lookups_in_vain: Option<u64>,
    /// Time that these took together: their number times the mean of those that were timed. None if fewer
    /// than 30 were.
    pub lookups_in_vain_ns: Option<u64>,
    /// `lookups_in_vain` by call family: "open", "stat"; families without failures are absent.
    pub lookups_failed_by_family: BTreeMap<String, u64>,
    /// Successful opens.
    pub opens: Option<u64>,
    /// Voluntary context switches.
    pub switches_voluntary: Option<u64>,
    /// Involuntary context switches.
    pub switches_involuntary: Option<u64>,
    /// Minor page faults.
    pub faults_minor: Option<u64>,
    /// Major page faults.
    pub faults_major: Option<u64>,
    /// Bytes read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes written to storage.
    pub write_bytes: Option<u64>,
    /// Total time that tasks were runnable but waiting for a CPU.
    pub run_delay_ns: Option<u64>,
    /// The largest peak RSS of any program.
    pub maxrss_bytes: Option<u64>,
    /// The program with that peak RSS.
    pub maxrss_program: Option<String>,
    /// Processes still alive when the recording ended.
    pub alive_processes: Option<u64>,
}

/// The class of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A command supplied by the operating system.
    Command,
    /// Part of an experiment's software.
    Framework,
    /// Anything else.
    Program,
}

/// Processes and threads that ran the same program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Category {
    /// System command, framework program, or other program.
    pub class: Class,
    /// The group of the command or software: "text", "o2 sim"; empty if no rule assigns one.
    pub group: String,
    /// The command, program or script.
    pub name: String,
    /// Processes whose last program this was; zero if all of them went on to exec another.
    pub processes: Option<u64>,
    /// The part of `processes` that was there before the recording began; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there_before: Option<u64>,
    /// The part of `processes` that never called exec and therefore counts in the parent's
    /// category.
    pub forked: Option<u64>,
    /// Threads of these processes.
    pub threads: Option<u64>,
    /// Successful execs of it, including by processes that later ran something else.
    pub execs: Option<u64>,
    /// CPU time, exact.
    pub cpu_ns: Option<u64>,
    /// The part of it in user mode: estimated from ticks, supplemented by the ticks of the whole
    /// category where the row's own are too few, so that rows sum to the total. The interval fields
    /// below give the uncertainty.
    pub user_ns: Option<u64>,
    /// The part of it in the kernel, likewise estimated.
    pub system_ns: Option<u64>,
    /// The share of system time; None if fewer than 30 ticks hit these processes.
    pub system_percent: Option<f64>,
    /// Lower bound of the 95 % interval of that share, from these ticks alone.
    pub system_low_percent: Option<f64>,
    /// Upper bound of the same interval.
    pub system_high_percent: Option<f64>,
    /// Scheduler ticks that hit these processes.
    pub ticks: Option<f64>,
    /// Failed look-ups of paths that do not exist.
    pub lookups_failed: Option<u64>,
    /// Median process lifetime; None if no process has ended.
    pub median_life_ns: Option<u64>,
    /// Largest peak RSS of any of them.
    pub maxrss_bytes: Option<u64>,
    /// The program that started most of them.
    pub main_spawner: String,
    /// Number of them that it started.
    pub main_spawner_processes: Option<u64>,
}

/// Process creation by parent and child program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spawner {
    /// The program the parent was running.
    pub parent: String,
    /// The last program the child ran.
    pub child: String,
    /// Number of child processes.
    pub processes: u64,
    /// CPU time of the children.
    pub cpu_ns: Option<u64>,
    /// Child processes per second of wall time; None if the recording has no times.
    pub per_second: Option<f64>,
}

/// Failed look-ups in one directory, by call family and errno.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectoryMisses {
    /// The searched directory.
    pub directory: String,
    /// The call family: "open", "stat".
    pub family: String,
    /// The symbolic error: "ENOENT".
    pub errno: String,
    /// Number of failed look-ups.
    pub count: u64,
    /// Number of processes that made them.
    pub processes: u64,
}

/// A process that outlived its parent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detached {
    /// Its pid.
    pub pid: i32,
    /// The last program it ran.
    pub program: String,
    /// Its command line, or that of its forker if it executed nothing; None if it is not known.
    pub command: Option<String>,
    /// The phase in which it was born; None without marks.
    pub phase: Option<String>,
    /// The last program its parent ran.
    pub parent: String,
    /// Its CPU time.
    pub cpu_ns: Option<u64>,
    /// Its lifetime; None if it was alive at the end, or if times are not known.
    pub life_ns: Option<u64>,
}

/// Memory over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Sampling interval.
    pub interval_ns: u64,
    /// Number of sampling passes over all processes.
    pub passes: u64,
    /// Peak of the total PSS of all processes.
    pub peak_pss_bytes: u64,
    /// Time of that peak, since the start of the recording.
    pub peak_pss_at_ns: u64,
    /// Total RSS at that time, which counts shared pages once per process.
    pub rss_bytes_then: u64,
    /// Total USS at that time; None if the source does not know it.
    pub uss_bytes_then: Option<u64>,
    /// Number of processes at that time.
    pub processes_then: u64,
    /// One sample per process, at its largest PSS; the largest first.
    pub processes: Vec<ProcessMemory>,
    /// Processes that were never sampled.
    pub processes_not_looked_at: u64,
    /// The largest peak RSS of the processes never sampled, from their exit records; None if there
    /// are none.
    pub peak_rss_bytes_not_looked_at: Option<u64>,
}

/// Memory of one process at its largest PSS, and its peak RSS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessMemory {
    /// Its pid.
    pub pid: i32,
    /// Its serial number in the recording.
    pub serial: u32,
    /// The last program it ran.
    pub program: String,
    /// Time of the sample with the largest PSS, since the start of the recording.
    pub time_ns: u64,
    /// Peak RSS while it ran that program, from its exit record, since samples can miss the peak;
    /// None if it was alive at the end.
    pub peak_rss_bytes: Option<u64>,
    /// RSS in that sample.
    pub rss_bytes: u64,
    /// PSS: a page shared by n processes counts for 1/n.
    pub pss_bytes: u64,
    /// USS: memory not shared with any other process; None if the source does not know it.
    pub uss_bytes: Option<u64>,
    /// Shared resident memory; None likewise.
    pub shared_bytes: Option<u64>,
    /// Swapped-out memory.
    pub swap_bytes: u64,
}

/// Something that the recording could not observe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlindSpot {
    /// A stable name: "compat", "io_uring", "refused_tracer", "let_go", "systemd_run", "misses".
    pub what: &'static str,
    /// Description for readers.
    pub says: String,
    /// Number of processes concerned.
    pub processes: u64,
    /// The programs they ran.
    pub programs: Vec<String>,
}

/// Correlations over time: Pearson's r between series over equal bins, with its uncertainty. All
/// matrices have the order of `series`, and contain None where a series is constant or where a pair
/// has three independent bins or fewer (then only `n_effective` is known).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Correlations {
    /// Names of the series, in row and column order.
    pub series: Vec<String>,
    /// The matrix of Pearson's r.
    pub r: Vec<Vec<Option<f64>>>,
    /// Number of bins: the n of every coefficient of series that are known from the first bin.
    pub n: usize,
    /// The first bin in which each series is known; a pair leaves out the bins before both are
    /// known.
    pub known_from_bin: Vec<usize>,
    /// Width of a bin.
    pub bin_ns: u64,
    /// Effective sample size: the number of independent bins with the same information.
    pub n_effective: Vec<Vec<Option<f64>>>,
    /// Lower bound of the 95 % interval of r; None for three independent bins or fewer.
    pub r_low: Vec<Vec<Option<f64>>>,
    /// Upper bound of the same interval.
    pub r_high: Vec<Vec<Option<f64>>>,
    /// The lag of the column's series behind the row's, in bins, at which their correlation is
    /// strongest.
    pub lag_bins: Vec<Vec<Option<i64>>>,
    /// Pearson's r at that lag.
    pub r_at_lag: Vec<Vec<Option<f64>>>,
    /// Spearman's rho: Pearson's r of the ranks.
    pub spearman: Vec<Vec<Option<f64>>>,
}

impl Correlations {
    /// Minimum number of bins: with fewer, the 95 % interval of r = 0 extends beyond 0.36 at best.
    pub const BINS_MIN: usize = 30;
}
