//! The lifetime of every process on a common time axis.

use serde::Serialize;

use crate::series::{Mark, Series};
use crate::table::Unit;

/// Every process as a bar, below strips that show the activity of the whole tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gantt {
    /// The title: the command.
    pub title: String,
    /// The requested view.
    pub view: GanttView,
    /// Number of processes excluded by the view.
    pub left_out_processes: u64,
    /// Number of threads excluded by it, if threads are shown.
    pub left_out_threads: u64,
    /// Start of the time axis, relative to the start of the recording.
    pub from_ns: u64,
    /// End of the time axis.
    pub until_ns: u64,
    /// The lanes (kinds of bars), one colour each, the one with most processes first.
    pub lanes: Vec<Lane>,
    /// Program names, indexed by `Bar::name`.
    pub names: Vec<String>,
    /// One bar per process, and per thread where those are shown, from the first row to the last.
    pub bars: Vec<Bar>,
    /// The critical path, where it is on a bar, in order of time; empty if it is not known.
    pub path: Vec<PathPiece>,
    /// Moments that the payload named, in nanoseconds since the start of the recording, in order of time.
    pub marks: Vec<Mark>,
    /// Bin edges of the strips, ascending; one more than there are bins.
    pub edges_ns: Vec<u64>,
    /// Activity of the whole tree on the same axis; empty strips are left out.
    pub strips: Vec<Strip>,
}

/// The part of a recording that a Gantt chart shows, and its form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GanttView {
    /// True for a bar for each step instead of each process; then `only` has names of steps and groups.
    pub steps: bool,
    /// The order of rows.
    pub order: GanttOrder,
    /// True if threads other than the first of each process have bars of their own.
    pub threads: bool,
    /// Only processes of these categories or programs; all if empty.
    pub only: Vec<String>,
    /// Only processes with this pid or program, and their descendants.
    pub subtree: Option<String>,
    /// Only processes alive after this time, relative to the start of the recording.
    pub from_ns: Option<u64>,
    /// Only processes alive before this time, likewise.
    pub until_ns: Option<u64>,
    /// Only processes with at least this lifetime.
    pub min_life_ns: Option<u64>,
}

/// The order of rows in a Gantt chart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GanttOrder {
    /// By start time.
    #[default]
    Time,
    /// Children below their parent, by start time.
    Tree,
    /// By category; bars that do not overlap share a row.
    Category,
}

/// A kind of bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Number of processes.
    pub processes: u64,
    /// Number of threads other than the first of each process, where they are shown.
    pub threads: u64,
    /// True if it collects everything without a lane of its own.
    pub is_rest: bool,
}

/// The bar of one process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Index of its lane.
    pub lane: u32,
    /// The program it ran, as an index into the names.
    pub name: u32,
    /// Its pid, or for a thread the pid of its process.
    pub pid: i32,
    /// Start, relative to the start of the recording.
    pub begin_ns: u64,
    /// End, likewise; the end of the recording if it was still alive.
    pub end_ns: u64,
    /// Depth in the displayed part of the tree.
    pub depth: u32,
    /// Index of the bar of the nearest displayed ancestor.
    pub parent: Option<u32>,
    /// True if it is a thread other than the first of its process.
    pub is_thread: bool,
}

/// A time during which the critical path was on a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PathPiece {
    /// Index of the bar.
    pub bar: u32,
    /// Start, relative to the start of the recording.
    pub begin_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
}

/// A quantity over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Strip {
    /// Its name, without the unit.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// One value per bin in each series; the series are stacked.
    pub series: Vec<Series>,
    /// True if each series has the colour of the lane with the same index.
    pub by_lane: bool,
    /// The requested amount; values above it are highlighted.
    pub limit: Option<Mark>,
}
