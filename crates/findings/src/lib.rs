//! What an analysis found, as plain data: the border between those who compute and those who
//! render. Nothing here knows how a figure came about or how it will look.
//!
//! Every number has its unit in its name. Names and paths are text as `proctrace_wire::escape`
//! makes it. `proctrace report --json` prints [`Findings`] as it is, so names here are an
//! interface: add to them, do not change them.

mod chart;
mod ends;
mod gantt;
mod metric;
mod number;
mod rows;
mod series;
mod table;

pub use chart::{
    Axis, Bars, Chart, ChartBody, Flame, HeatMap, Histogram, Lines, Point, Scatter, Step, Waterfall,
};
pub use ends::{Ends, ProgramEnd, signal_name};
pub use gantt::{Bar, Gantt, GanttOrder, GanttView, Lane, Strip};
pub use metric::{FAMILIES, Kind, Metric, MetricFamily, Metrics, Unknown, Worse};
pub use number::{bytes, count, counted, figure, time};
pub use rows::{Rows, RowsColumn, RowsValues};
pub use series::{Mark, Series};
pub use table::{Cell, Column, Table, Unit, Values};

use std::collections::BTreeMap;

use serde::Serialize;

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// What was recorded.
    pub run: Run,
    /// Whether the figures can be trusted.
    pub health: Health,
    /// What the recording knows, quantity by quantity. What is not known is None in all that follows,
    /// or not there, but never 0.
    pub known: Vec<Known>,
    /// The figures at a glance.
    pub summary: Summary,
    /// Processes and threads by what they ran, the most numerous first.
    pub categories: Vec<Category>,
    /// Who started what, the most frequent first.
    pub spawners: Vec<Spawner>,
    /// Failed look-ups by directory, call and errno, the most frequent first.
    pub lookups: Vec<DirectoryMisses>,
    /// How processes ended: what failed, and what a signal killed.
    pub ends: Option<Ends>,
    /// Processes that outlived their parent, those with most CPU time first.
    pub detached: Vec<Detached>,
    /// Memory over time, where it was looked at.
    pub memory: Option<Memory>,
    /// What could not be seen.
    pub blind_spots: Vec<BlindSpot>,
    /// What goes with what over time.
    pub correlations: Correlations,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The command and its arguments; empty where none was launched.
    pub command: Vec<String>,
    /// Whom the recorder was told to record: "command", "pids" or "system".
    pub scope: String,
    /// The cgroup whose members were recorded as well.
    pub cgroup: Option<String>,
    /// Where it was started.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// When it was started, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How it ended; None if it was still running or the recording was cut short.
    pub outcome: Option<Outcome>,
    /// CPUs it might use.
    pub cores: u32,
    /// From its start to its own exit, or to the last record if that is not known.
    pub wall_ns: u64,
    /// From its start to the last record: longer if descendants outlived it.
    pub recorded_ns: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Whether the figures can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// Whether the recorder got to finish the trace.
    pub complete: bool,
    /// Whether the recorder was still writing the trace when it was read, which is then not
    /// complete.
    pub recording_now: bool,
    /// Records that were lost while recording.
    pub lost: u64,
    /// By kind and reason.
    pub losses: Vec<Loss>,
    /// What is wrong with the file, in words.
    pub damage: Vec<String>,
    /// The books: each must balance.
    pub laws: Vec<Law>,
}

impl Health {
    /// Whether every figure is exact.
    pub fn is_good(&self) -> bool {
        self.complete && self.lost == 0 && self.damage.is_empty() && self.laws_hold()
    }

    /// Whether the books balance, as far as that could be checked.
    pub fn laws_hold(&self) -> bool {
        !self.laws.iter().any(Law::is_broken)
    }

    /// How many of the laws could be checked.
    pub fn laws_checked(&self) -> usize {
        self.laws.iter().filter(|law| law.holds.is_some()).count()
    }
}

/// How well a recording knows a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// A name that does not change: "cpu", "lookups_open".
    pub quantity: &'static str,
    /// How well.
    pub state: Knowledge,
    /// By which method it is estimated, why it is a bound, why it is not there.
    pub why: Option<String>,
}

/// How well something is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Every value is.
    Exact,
    /// It is estimated.
    Estimate,
    /// Records were lost, so there was at least so much.
    LowerBound,
    /// Not at all.
    Absent,
}

/// A number of lost records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What kind.
    pub kind: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// Something that must hold in every complete recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Law {
    /// A stable name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Whether it holds; None where it could not be checked.
    pub holds: Option<bool>,
    /// Why it could not be checked.
    pub not_checked: Option<String>,
    /// What should be equal to `found`; None where it is not known.
    pub expected: Option<f64>,
    /// What was found; None where it is not known.
    pub found: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
}

impl Law {
    /// Whether it was checked, and does not hold.
    pub fn is_broken(&self) -> bool {
        self.holds == Some(false)
    }
}

/// The figures at a glance; None for what the recording does not know (see [`Known`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// CPU time of every task, exact.
    pub cpu_ns: Option<u64>,
    /// Of it, in user mode: an estimate from `ticks`.
    pub user_ns: Option<u64>,
    /// Of it, in the kernel, likewise.
    pub system_ns: Option<u64>,
    /// Scheduler ticks that hit any task: the n of that estimate.
    pub ticks: Option<f64>,
    /// Lower end of the 95 % interval of the share of system time, in percent.
    pub system_low_percent: Option<f64>,
    /// Its upper end.
    pub system_high_percent: Option<f64>,
    /// What wait(2), and so time(1), says of system time; None if the command was not waited for. Too
    /// little where most processes are shorter than a tick.
    pub waited_system_ns: Option<u64>,
    /// CPU time over recorded time and cores, in percent.
    pub efficiency_percent: Option<f64>,
    /// What wait(2), and so time(1), says of the command; None if it was not waited for.
    pub waited_cpu_ns: Option<u64>,
    /// CPU time of processes whose parent was gone, or never waited for them.
    pub unwaited_cpu_ns: Option<u64>,
    /// Processes that were still running when their parent exited.
    pub detached_processes: Option<u64>,
    /// CPU time of those.
    pub detached_cpu_ns: Option<u64>,
    /// Processes, the command included.
    pub processes: Option<u64>,
    /// Threads, beside each process's first.
    pub threads: Option<u64>,
    /// Successful execs.
    pub execs: Option<u64>,
    /// Failed execs.
    pub execs_failed: Option<u64>,
    /// Most tasks at one time.
    pub peak_tasks: Option<u64>,
    /// Most processes at one time.
    pub peak_processes: Option<u64>,
    /// Most tasks running or runnable in a sample; None without samples.
    pub peak_running: Option<u64>,
    /// Half of the processes lived shorter; None if none has ended.
    pub median_life_ns: Option<u64>,
    /// Failed look-ups, whatever they were for: all calls that failed, those of `lookups_of_no_link`
    /// included.
    pub lookups_failed: Option<u64>,
    /// Of them, readlinks of what is there but no link: how realpath(3) finds its way, nothing in
    /// vain. Neither the figures by family nor those by directory count them.
    pub lookups_of_no_link: Option<u64>,
    /// The others, which looked for what is not there: what reports and metrics call failed look-ups.
    pub lookups_in_vain: Option<u64>,
    /// The same by family of calls: "open", "stat"; those that did not occur are not there.
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
    /// Time tasks were runnable without a CPU.
    pub run_delay_ns: Option<u64>,
    /// The largest peak RSS of a program.
    pub maxrss_bytes: Option<u64>,
    /// Which program that was.
    pub maxrss_program: Option<String>,
    /// Processes still there when the recording ended.
    pub alive_processes: Option<u64>,
}

/// What kind of thing a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A command that comes with the system.
    Command,
    /// Part of an experiment's software.
    Framework,
    /// Anything else.
    Program,
}

/// Processes and threads that ran the same thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Category {
    /// A system command, of an experiment's software, or a program of its own.
    pub class: Class,
    /// What sort of command or software: "text", "o2 sim"; empty where no rule says.
    pub group: String,
    /// The command, program or script.
    pub name: String,
    /// Processes that ran it last; none where all went on to something else.
    pub processes: Option<u64>,
    /// Of them, those that never called exec and so count where their parent does.
    pub forked: Option<u64>,
    /// Their threads.
    pub threads: Option<u64>,
    /// Successful execs of it, also by processes that ran something else after it.
    pub execs: Option<u64>,
    /// CPU time, exact.
    pub cpu_ns: Option<u64>,
    /// Of it, in user mode: estimated from ticks, of which it borrows from its category what it lacks,
    /// so that rows add up to the whole. How certain that is say the following fields.
    pub user_ns: Option<u64>,
    /// Of it, in the kernel, likewise.
    pub system_ns: Option<u64>,
    /// The share of system time; None where fewer than 30 ticks hit these processes.
    pub system_percent: Option<f64>,
    /// Lower end of the 95 % interval of that share, by these ticks alone.
    pub system_low_percent: Option<f64>,
    /// Its upper end.
    pub system_high_percent: Option<f64>,
    /// Scheduler ticks that hit these processes.
    pub ticks: Option<f64>,
    /// Failed look-ups in vain.
    pub lookups_failed: Option<u64>,
    /// Half of the processes lived shorter; None if none has ended.
    pub median_life_ns: Option<u64>,
    /// Largest peak RSS of one of them.
    pub maxrss_bytes: Option<u64>,
    /// What started most of them.
    pub main_spawner: String,
    /// How many of them that was.
    pub main_spawner_processes: Option<u64>,
}

/// Who started what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spawner {
    /// What the parent was running.
    pub parent: String,
    /// What the child came to run.
    pub child: String,
    /// How often.
    pub processes: u64,
    /// CPU time of the children.
    pub cpu_ns: Option<u64>,
    /// How often per second of wall time.
    pub per_second: f64,
}

/// Failed look-ups in one directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectoryMisses {
    /// The directory that was searched.
    pub directory: String,
    /// Which calls: "open", "stat".
    pub family: String,
    /// What the calls said: "ENOENT".
    pub errno: String,
    /// How many.
    pub count: u64,
    /// How many processes did it.
    pub processes: u64,
}

/// A process that was still there when its parent had gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detached {
    /// Its pid.
    pub pid: i32,
    /// What it ran last.
    pub program: String,
    /// What its parent ran last.
    pub parent: String,
    /// Its CPU time.
    pub cpu_ns: Option<u64>,
    /// How long it lived; None if it was alive at the end.
    pub life_ns: Option<u64>,
}

/// Memory over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// Pause between looks.
    pub interval_ns: u64,
    /// Looks at all processes.
    pub passes: u64,
    /// The most that all processes took together: the sum of their proportional shares.
    pub peak_pss_bytes: u64,
    /// The sum of their resident memory then, in which shared pages count once for each.
    pub rss_bytes_then: u64,
    /// The sum of what each had for itself then.
    pub uss_bytes_then: u64,
    /// How many processes that were.
    pub processes_then: u64,
    /// Each process at its largest proportional share, the largest first.
    pub processes: Vec<ProcessMemory>,
    /// Processes that no look found.
    pub processes_not_looked_at: u64,
    /// The largest peak RSS of these, from their exit records; None where there are none.
    pub peak_rss_bytes_not_looked_at: Option<u64>,
}

/// The memory of one process when its proportional share was largest, and its peak RSS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessMemory {
    /// Its pid.
    pub pid: i32,
    /// What it ran last.
    pub program: String,
    /// The most that was resident while it ran that, by its exit record, which looks can miss; None
    /// if it was alive at the end.
    pub peak_rss_bytes: Option<u64>,
    /// Resident at that look.
    pub rss_bytes: u64,
    /// Proportional: a page shared by n processes counts for 1/n.
    pub pss_bytes: u64,
    /// Its own alone.
    pub uss_bytes: u64,
    /// Resident and shared.
    pub shared_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
}

/// Something that the recording could not see.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlindSpot {
    /// A name that does not change: "compat", "io_uring", "systemd_run", "misses".
    pub what: &'static str,
    /// The same for people.
    pub says: String,
    /// How many processes it concerns.
    pub processes: u64,
    /// What they ran.
    pub programs: Vec<String>,
}

/// What goes with what over time: Pearson's r between series over equal bins, and how far it can
/// be believed. All matrices have the order of `series`, and None where a series never changes, or
/// where a pair has three independent bins or fewer (then only `n_effective` is known).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Correlations {
    /// Names of the series, in the order of rows and columns.
    pub series: Vec<String>,
    /// The matrix.
    pub r: Vec<Vec<Option<f64>>>,
    /// Bins: the n of every coefficient of series that are known from the first bin.
    pub n: usize,
    /// The first bin in which each series is known; a pair leaves out the bins before both are.
    pub known_from_bin: Vec<usize>,
    /// Width of a bin.
    pub bin_ns: u64,
    /// How many independent bins would tell as much.
    pub n_effective: Vec<Vec<Option<f64>>>,
    /// Lower end of the 95 % interval of r; None for three independent bins or fewer.
    pub r_low: Vec<Vec<Option<f64>>>,
    /// Its upper end.
    pub r_high: Vec<Vec<Option<f64>>>,
    /// By how many bins the column's series is behind the row's where their correlation is
    /// strongest.
    pub lag_bins: Vec<Vec<Option<i64>>>,
    /// Pearson's r there.
    pub r_at_lag: Vec<Vec<Option<f64>>>,
    /// Spearman's rho: the r of ranks.
    pub spearman: Vec<Vec<Option<f64>>>,
}
