//! Metrics with stable names: limited by the gate, compared between two runs, and exported to
//! external monitoring.

use std::fmt;

use proctrace_wire::Quantity;
use serde::{Deserialize, Serialize};

use crate::figure::Figure;

/// The kind of quantity in a family, which determines how it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A deterministic number of events: the same payload yields the same number.
    Count,
    /// A number that depends on timing: context switches, page faults, peaks of simultaneous tasks.
    Varying,
    /// CPU time in seconds; varies between runs.
    Cpu,
    /// Elapsed time in seconds; varies between runs and with other load on the machine.
    Wall,
    /// Memory, in bytes.
    Memory,
    /// Bytes transferred.
    Bytes,
    /// A ratio of two quantities, dimensionless or in percent.
    Ratio,
}

/// The direction in which a metric gets worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worse {
    /// More is worse.
    Higher,
    /// Less is worse.
    Lower,
}

/// Metrics that share a name and differ in their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MetricFamily {
    /// The stable name; ends in the unit, if there is one.
    pub name: &'static str,
    /// The labels that distinguish its members.
    pub labels: &'static [&'static str],
    /// Determines how it is compared.
    pub kind: Kind,
    /// The direction in which it gets worse.
    pub worse: Worse,
    /// "seconds", "bytes", "percent", or empty.
    pub unit: &'static str,
    /// A description in one sentence.
    pub help: &'static str,
    /// Quantities without which it is not known. A family with the label "kind" needs, for each family of calls, the
    /// quantity of that name instead.
    #[serde(skip)]
    pub needs: &'static [Quantity],
    /// True if it is a sum over all tasks, which a source can read of a whole tree without following its births.
    #[serde(skip)]
    pub is_sum: bool,
    /// The figure of processes that it is, by the program that they ran last.
    #[serde(skip)]
    pub figure: Option<Figure>,
}

impl MetricFamily {
    /// Finds a family by name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// One metric value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of the family.
    pub name: String,
    /// Values of the family's labels, in the family's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// The value, in the family's unit.
    pub value: f64,
}

impl fmt::Display for Metric {
    /// The notation of budgets: `execs{command="sed"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, (label, value)) in self.labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' })?;
        }
        if self.labels.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

/// All metrics of one recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The recorded command.
    pub command: Vec<String>,
    /// Host name of the machine it ran on.
    pub host: String,
    /// Start time, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Number of CPUs available to it.
    pub cores: u32,
    /// Part of the time of all CPUs of the machine that others used while the command ran, in percent; None if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Reasons why the metrics cannot be trusted: lost records, damage, violated invariants. Empty
    /// if they can be trusted.
    pub doubts: Vec<String>,
    /// Metrics in the order of the families, the largest of each first. Complete except for
    /// `unknown`: any other labelled metric that is absent is zero, and an absent metric without
    /// labels was not measured.
    pub metrics: Vec<Metric>,
    /// Metrics unknown to the recording. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// A set of metrics that a recording does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of the family.
    pub name: String,
    /// Restricts it to metrics whose label "kind" has this value; None means the whole family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The same for the label "phase".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The reason: "failed stats were left out (--misses)".
    pub why: String,
}

impl Unknown {
    /// A whole family.
    pub fn family(name: &str, why: String) -> Self {
        Self { name: name.to_owned(), kind: None, phase: None, why }
    }

    /// The label to which it is restricted, and its value.
    pub fn label(&self) -> Option<(&'static str, &str)> {
        let kind = self.kind.as_deref().map(|kind| ("kind", kind));
        kind.or_else(|| self.phase.as_deref().map(|phase| ("phase", phase)))
    }

    /// True if it covers the metric of this family with these labels.
    pub fn is_about(&self, family: &str, labels: &[(String, String)]) -> bool {
        self.name == family
            && self.label().is_none_or(|(name, wanted)| {
                labels.iter().any(|(label, value)| label == name && value == wanted)
            })
    }
}

macro_rules! family {
    ($name:literal, [$($label:literal),*], $kind:ident, $unit:literal, $help:literal, [$($need:ident),*]) => {
        family!($name, [$($label),*], $kind, $unit, $help, &[$(Quantity::$need),*])
    };
    ($name:literal, [$($label:literal),*], $kind:ident, $unit:literal, $help:literal, $needs:expr) => {
        MetricFamily {
            name: $name,
            labels: &[$($label),*],
            kind: Kind::$kind,
            worse: Worse::Higher,
            unit: $unit,
            help: $help,
            needs: $needs,
            is_sum: false,
            figure: None,
        }
    };
}

/// A family of sums over all tasks.
const fn sum(family: MetricFamily) -> MetricFamily {
    MetricFamily { is_sum: true, ..family }
}

/// A family of a figure of processes, by the program that they ran last.
const fn of_processes(figure: Figure, family: MetricFamily) -> MetricFamily {
    MetricFamily { figure: Some(figure), ..family }
}

/// All families. Families may be added; a published name never changes.
pub const FAMILIES: &[MetricFamily] = &[
    family!("total_processes", [], Count, "", "Processes, including the command.", [Forks]),
    family!(
        "total_threads",
        [],
        Count,
        "",
        "Threads, except the first one of each process.",
        [Forks]
    ),
    family!("total_tasks", [], Count, "", "Tasks: total_processes plus total_threads.", [Forks]),
    family!("total_execs", [], Count, "", "Successful execs.", [Execs]),
    family!("total_execs_failed", [], Count, "", "Failed execs.", [LookupsExec]),
    family!(
        "total_commands",
        [],
        Count,
        "",
        "Processes that ran a system command.",
        &Quantity::WHO
    ),
    family!(
        "total_framework_processes",
        [],
        Count,
        "",
        "Processes that ran an experiment's software.",
        &Quantity::WHO
    ),
    family!(
        "total_failed_lookups",
        [],
        Count,
        "",
        "Failed path look-ups, except readlinks of existing files that are not links.",
        &Quantity::LOOKUPS
    ),
    family!("total_detached", [], Count, "", "Processes that outlived their parent.", [Forks]),
    family!("total_failed", [], Count, "", "Processes that did not exit with 0.", [Forks]),
    family!("total_opens", [], Count, "", "Successful opens.", [LookupsOpen]),
    sum(family!(
        "total_cpu_user_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time of all tasks in user mode.",
        [Forks, Cpu, Split]
    )),
    sum(family!(
        "total_cpu_system_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time of all tasks in the kernel.",
        [Forks, Cpu, Split]
    )),
    sum(family!("total_cpu_seconds", [], Cpu, "seconds", "CPU time of all tasks.", [Forks, Cpu])),
    family!(
        "detached_cpu_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time of processes that outlived their parent.",
        [Forks, Cpu]
    ),
    family!(
        "unwaited_cpu_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time of processes that were not waited for, which time(1) does not report.",
        [Forks, Cpu]
    ),
    family!(
        "wall_seconds",
        [],
        Wall,
        "seconds",
        "Wall time from the command's start to its exit.",
        [Times]
    ),
    family!(
        "run_delay_seconds",
        [],
        Wall,
        "seconds",
        "Total time that tasks were runnable but waiting for a CPU.",
        [Forks, RunDelay]
    ),
    family!("peak_tasks", [], Varying, "", "Peak number of simultaneous tasks.", [Forks, Times]),
    family!(
        "peak_processes",
        [],
        Varying,
        "",
        "Peak number of simultaneous processes.",
        [Forks, Times]
    ),
    family!(
        "peak_rss_bytes",
        [],
        Memory,
        "bytes",
        "Largest peak RSS of any program.",
        [Forks, PeakRss]
    ),
    family!(
        "peak_pss_bytes",
        [],
        Memory,
        "bytes",
        "Peak of the total PSS of all processes (only with --memory).",
        [Memory]
    ),
    family!(
        "switches_voluntary",
        [],
        Varying,
        "",
        "Voluntary context switches.",
        [Forks, Switches]
    ),
    family!(
        "switches_involuntary",
        [],
        Varying,
        "",
        "Involuntary context switches.",
        [Forks, Switches]
    ),
    family!("faults_minor", [], Varying, "", "Minor page faults.", [Forks, Faults]),
    family!("faults_major", [], Varying, "", "Major page faults.", [Forks, Faults]),
    sum(family!("read_bytes", [], Bytes, "bytes", "Bytes read from storage.", [Forks, Io])),
    sum(family!("write_bytes", [], Bytes, "bytes", "Bytes written to storage.", [Forks, Io])),
    family!("processes", ["category"], Count, "", "Processes by category.", &Quantity::WHO),
    family!(
        "threads",
        ["category"],
        Count,
        "",
        "Threads by the category of their process.",
        &Quantity::WHO
    ),
    family!(
        "cpu_user_seconds",
        ["category"],
        Cpu,
        "seconds",
        "CPU time in user mode, by category.",
        [Forks, Execs, Cpu, Split]
    ),
    family!(
        "cpu_system_seconds",
        ["category"],
        Cpu,
        "seconds",
        "CPU time in the kernel, by category.",
        [Forks, Execs, Cpu, Split]
    ),
    family!("execs", ["command"], Count, "", "Successful execs, by executed command.", [Execs]),
    family!(
        "command_processes",
        ["command"],
        Count,
        "",
        "Processes, by the last program they ran.",
        &Quantity::WHO
    ),
    family!(
        "command_threads",
        ["command"],
        Count,
        "",
        "Threads, except the first one of each process, by the last program of the process.",
        &Quantity::WHO
    ),
    of_processes(
        Figure::PeakRssBytes,
        family!(
            "command_peak_rss_bytes",
            ["command"],
            Memory,
            "bytes",
            "Largest peak RSS of a process, by its last program.",
            [Forks, Execs, Argv, PeakRss]
        ),
    ),
    of_processes(
        Figure::FileRssBytes,
        family!(
            "command_file_rss_bytes",
            ["command"],
            Memory,
            "bytes",
            "Largest resident memory of files at the end of a process, by its last program.",
            [Forks, Execs, Argv, PeakRss]
        ),
    ),
    family!(
        "detached_processes",
        ["command"],
        Count,
        "",
        "Processes that outlived their parent, by the last program they ran.",
        &Quantity::WHO
    ),
    family!(
        "failed_processes",
        ["command"],
        Count,
        "",
        "Processes that did not exit with 0, by the last program they ran.",
        &Quantity::WHO
    ),
    family!(
        "command_cpu_seconds",
        ["command"],
        Cpu,
        "seconds",
        "CPU time, by the last program of the process.",
        [Forks, Execs, Cpu]
    ),
    family!("failed_lookups", ["kind"], Count, "", "Failed look-ups, by call family.", []),
    family!(
        "command_failed_lookups",
        ["command"],
        Count,
        "",
        "Failed look-ups, by the last program of the process.",
        &Quantity::LOOKUPS_OF_PROGRAMS
    ),
    family!(
        "directory_failed_lookups",
        ["directory", "kind"],
        Count,
        "",
        "Failed look-ups, by searched directory and call family.",
        []
    ),
    family!(
        "step_runs",
        ["group"],
        Count,
        "",
        "Steps of the group, by whatever coordinates the job (docs/steps.md).",
        [Forks, Execs, Argv]
    ),
    family!(
        "step_failures",
        ["group"],
        Count,
        "",
        "Those whose first process did not exit with 0.",
        [Forks, Execs, Argv]
    ),
    family!(
        "step_wall_seconds",
        ["group"],
        Wall,
        "seconds",
        "Sum of their wall times, which may overlap.",
        [Forks, Execs, Argv, Times]
    ),
    family!(
        "step_longest_wall_seconds",
        ["group"],
        Wall,
        "seconds",
        "The longest wall time of one of them.",
        [Forks, Execs, Argv, Times]
    ),
    family!(
        "step_cpu_seconds",
        ["group"],
        Cpu,
        "seconds",
        "CPU time of all their processes.",
        [Forks, Execs, Argv, Cpu]
    ),
    family!("step_processes", ["group"], Count, "", "Their processes.", [Forks, Execs, Argv]),
    family!(
        "step_peak_pss_bytes",
        ["group"],
        Memory,
        "bytes",
        "Peak of the total PSS of all processes of one of them (only with --memory).",
        [Forks, Execs, Argv, Memory]
    ),
    family!(
        "phase_begin_seconds",
        ["phase"],
        Wall,
        "seconds",
        "Time from the start to the mark that begins the phase.",
        [Execs, Argv, Times]
    ),
    family!(
        "phase_wall_seconds",
        ["phase"],
        Wall,
        "seconds",
        "Wall time from the mark of the phase to the next one.",
        [Execs, Argv, Times]
    ),
    family!(
        "phase_cpu_seconds",
        ["phase"],
        Cpu,
        "seconds",
        "CPU time of all tasks during the phase.",
        [Forks, Execs, Argv, Cpu, Samples]
    ),
    family!(
        "phase_processes",
        ["phase"],
        Varying,
        "",
        "Processes born during the phase.",
        [Forks, Execs, Argv]
    ),
    family!(
        "phase_failed_lookups",
        ["phase"],
        Varying,
        "",
        "Failed look-ups during the phase.",
        &Quantity::LOOKUPS_OF_PHASES
    ),
    family!(
        "phase_peak_pss_bytes",
        ["phase"],
        Memory,
        "bytes",
        "Peak of the total PSS of all processes during the phase (only with --memory).",
        [Execs, Argv, Memory]
    ),
    family!(
        "spawns",
        ["parent", "child"],
        Count,
        "",
        "Processes, by the program that started them and the last program they ran.",
        &Quantity::WHO
    ),
];
