//! The options of the chart of `report --gantt`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use proctrace_findings::{GanttOrder, GanttView};
use proctrace_record::nanoseconds;

use super::parse_duration;

/// What a Gantt chart shows, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Gantt chart (with --gantt or --out)")]
pub(crate) struct GanttArgs {
    /// What has a bar of its own.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "process", requires = "drawn")]
    pub(crate) gantt_by: By,

    /// Order of the rows.
    #[arg(long, value_enum, value_name = "ORDER", default_value = "time", requires = "drawn")]
    pub(crate) gantt_order: Order,

    /// Draw a separate bar for each thread.
    #[arg(long, requires = "drawn")]
    pub(crate) gantt_threads: bool,

    /// Draw only processes of this category, or whose last program was this one; with --gantt-by step, only steps of
    /// this name or group. Can be given several times.
    #[arg(long, value_name = "NAME", requires = "drawn")]
    pub(crate) gantt_only: Vec<String>,

    /// Draw only processes with this pid, or that ran this program, and their descendants.
    #[arg(long, value_name = "PID|PROGRAM", requires = "drawn")]
    pub(crate) gantt_subtree: Option<String>,

    /// Draw only tasks that were alive after this time, counted from the start of the recording.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "drawn")]
    pub(crate) gantt_from: Option<Duration>,

    /// Draw only tasks that were alive before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "drawn")]
    pub(crate) gantt_until: Option<Duration>,

    /// Draw only tasks with at least this lifetime.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "drawn")]
    pub(crate) gantt_min_life: Option<Duration>,
}

/// What has a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// A process.
    Process,
    /// A step (docs/steps.md); colours are those of groups.
    Step,
}

/// How rows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// By start time.
    Time,
    /// Children below their parent.
    Tree,
    /// By category or group; bars that do not overlap share a row.
    Category,
}

impl GanttArgs {
    /// The options as plain data.
    pub(crate) fn view(&self) -> GanttView {
        GanttView {
            steps: self.gantt_by == By::Step,
            order: match self.gantt_order {
                Order::Time => GanttOrder::Time,
                Order::Tree => GanttOrder::Tree,
                Order::Category => GanttOrder::Category,
            },
            threads: self.gantt_threads,
            only: self.gantt_only.clone(),
            subtree: self.gantt_subtree.clone(),
            from_ns: self.gantt_from.map(nanoseconds),
            until_ns: self.gantt_until.map(nanoseconds),
            min_life_ns: self.gantt_min_life.map(nanoseconds),
        }
    }
}
