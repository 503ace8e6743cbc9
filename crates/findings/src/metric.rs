//! Figures by stable names: what a gate limits, what two runs are compared by, and what is handed
//! to other people's monitoring.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of figure a family holds: how it is compared follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A number of things that happened: the same payload gives the same number.
    Count,
    /// A number that depends on timing: context switches, page faults, the most at one time.
    Varying,
    /// CPU time, in seconds: differs from run to run.
    Cpu,
    /// Elapsed time, in seconds: differs from run to run, and with whatever else runs.
    Wall,
    /// Memory, in bytes.
    Memory,
    /// Bytes moved.
    Bytes,
    /// One quantity over another, without a unit or in percent.
    Ratio,
}

/// Which way is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worse {
    /// More is worse.
    Higher,
    /// Less is worse.
    Lower,
}

/// Metrics of one name, which differ in their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MetricFamily {
    /// The stable name; ends in its unit, if it has one.
    pub name: &'static str,
    /// What its members are told apart by.
    pub labels: &'static [&'static str],
    /// How it is compared.
    pub kind: Kind,
    /// Which way is worse.
    pub worse: Worse,
    /// "seconds", "bytes", "percent", or nothing.
    pub unit: &'static str,
    /// What it says, in one sentence.
    pub help: &'static str,
}

impl MetricFamily {
    /// The family of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of its family.
    pub name: String,
    /// Values of its family's labels, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// In its family's unit.
    pub value: f64,
}

impl fmt::Display for Metric {
    /// As it is written in a budget: `execs{command="sed"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, (label, value)) in self.labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' })?;
        }
        if self.labels.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

/// All figures of one recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The command that was recorded.
    pub command: Vec<String>,
    /// Where: host name.
    pub host: String,
    /// When it was started, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// CPUs it might use.
    pub cores: u32,
    /// Why the figures cannot be trusted: losses, damage, books that do not balance. Empty if
    /// they can.
    pub doubts: Vec<String>,
    /// In the order of the families, the largest of each first. Complete but for what is `unknown`: any
    /// other figure with labels that is not there is zero, one without labels was not measured.
    pub metrics: Vec<Metric>,
    /// What the recording does not know. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// Figures that a recording does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of their family.
    pub name: String,
    /// Only those with this value of the label "kind"; all of the family where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why: "failed stats were left out (--misses)".
    pub why: String,
}

impl Unknown {
    /// Whether it is about a figure of this family with these labels.
    pub fn is_about(&self, family: &str, labels: &[(String, String)]) -> bool {
        self.name == family
            && self.kind.as_ref().is_none_or(|kind| {
                labels.iter().any(|(label, value)| label == "kind" && value == kind)
            })
    }
}

macro_rules! family {
    ($name:literal, [$($label:literal),*], $kind:ident, $unit:literal, $help:literal) => {
        MetricFamily {
            name: $name,
            labels: &[$($label),*],
            kind: Kind::$kind,
            worse: Worse::Higher,
            unit: $unit,
            help: $help,
        }
    };
}

/// Every family there is. Add to them; a name that was published does not change.
pub const FAMILIES: &[MetricFamily] = &[
    family!("total_processes", [], Count, "", "Processes, the command included."),
    family!("total_threads", [], Count, "", "Threads, beside each process's first."),
    family!("total_tasks", [], Count, "", "Processes and threads together."),
    family!("total_execs", [], Count, "", "Successful execs."),
    family!("total_execs_failed", [], Count, "", "Failed execs."),
    family!("total_commands", [], Count, "", "Processes that ran a command of the system."),
    family!("total_framework_processes", [], Count, "", "Processes of an experiment's software."),
    family!(
        "total_failed_lookups",
        [],
        Count,
        "",
        "Failed look-ups of a path, without readlinks of what is no link."
    ),
    family!("total_detached", [], Count, "", "Processes that outlived their parent."),
    family!("total_opens", [], Count, "", "Successful opens."),
    family!("total_cpu_user_seconds", [], Cpu, "seconds", "CPU time in user mode, of every task."),
    family!(
        "total_cpu_system_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time in the kernel, of every task."
    ),
    family!("total_cpu_seconds", [], Cpu, "seconds", "CPU time of every task."),
    family!(
        "detached_cpu_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time of processes that outlived their parent."
    ),
    family!(
        "unwaited_cpu_seconds",
        [],
        Cpu,
        "seconds",
        "CPU time that no one waited for, and time(1) so does not see."
    ),
    family!("wall_seconds", [], Wall, "seconds", "From the command's start to its exit."),
    family!("run_delay_seconds", [], Wall, "seconds", "Time tasks were runnable without a CPU."),
    family!("peak_tasks", [], Varying, "", "Most tasks at one time."),
    family!("peak_processes", [], Varying, "", "Most processes at one time."),
    family!("peak_rss_bytes", [], Memory, "bytes", "The largest peak RSS of one program."),
    family!(
        "peak_pss_bytes",
        [],
        Memory,
        "bytes",
        "The most that all processes took together (only with --memory)."
    ),
    family!("switches_voluntary", [], Varying, "", "Voluntary context switches."),
    family!("switches_involuntary", [], Varying, "", "Involuntary context switches."),
    family!("faults_minor", [], Varying, "", "Minor page faults."),
    family!("faults_major", [], Varying, "", "Major page faults."),
    family!("read_bytes", [], Bytes, "bytes", "Bytes read from storage."),
    family!("write_bytes", [], Bytes, "bytes", "Bytes written to storage."),
    family!("processes", ["category"], Count, "", "Processes by category."),
    family!("threads", ["category"], Count, "", "Threads by the category of their process."),
    family!(
        "cpu_user_seconds",
        ["category"],
        Cpu,
        "seconds",
        "CPU time in user mode, by category."
    ),
    family!(
        "cpu_system_seconds",
        ["category"],
        Cpu,
        "seconds",
        "CPU time in the kernel, by category."
    ),
    family!("execs", ["command"], Count, "", "Successful execs, by what was run."),
    family!("command_processes", ["command"], Count, "", "Processes, by what they ran last."),
    family!(
        "detached_processes",
        ["command"],
        Count,
        "",
        "Processes that outlived their parent, by what they ran last."
    ),
    family!(
        "command_cpu_seconds",
        ["command"],
        Cpu,
        "seconds",
        "CPU time, by what the process ran last."
    ),
    family!("failed_lookups", ["kind"], Count, "", "Failed look-ups, by family of calls."),
    family!(
        "command_failed_lookups",
        ["command"],
        Count,
        "",
        "Failed look-ups, by what the process ran last."
    ),
    family!(
        "directory_failed_lookups",
        ["directory", "kind"],
        Count,
        "",
        "Failed look-ups, by the directory searched and family of calls."
    ),
    family!(
        "spawns",
        ["parent", "child"],
        Count,
        "",
        "Processes by what started them and what they came to run."
    ),
];
