//! The life of every process on one axis of time.

use serde::Serialize;

use crate::series::{Mark, Series};
use crate::table::Unit;

/// Every process as a bar, below what the whole tree did meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gantt {
    /// What it shows: the command.
    pub title: String,
    /// What was asked for.
    pub view: GanttView,
    /// Processes that the view leaves out.
    pub left_out_processes: u64,
    /// Threads that it leaves out, where threads are shown.
    pub left_out_threads: u64,
    /// Where the axis of time begins, from the start of the recording.
    pub from_ns: u64,
    /// Where it ends.
    pub until_ns: u64,
    /// The kinds of bars, each with a colour, the one with most processes first.
    pub lanes: Vec<Lane>,
    /// What bars ran, by number.
    pub names: Vec<String>,
    /// One per process, and per thread where those are shown, from the first row to the last.
    pub bars: Vec<Bar>,
    /// Edges of the bins of the strips, one more than there are bins; rising.
    pub edges_ns: Vec<u64>,
    /// What the whole tree did, on the same axis; empty ones are left out.
    pub strips: Vec<Strip>,
}

/// What of a recording a Gantt chart shows, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GanttView {
    /// How rows follow each other.
    pub order: GanttOrder,
    /// Whether threads beside each process's first have bars of their own.
    pub threads: bool,
    /// Only processes of these categories or programs; all if there are none.
    pub only: Vec<String>,
    /// Only processes with this pid, or that ran this program, and their descendants.
    pub subtree: Option<String>,
    /// Only what lived after this time, from the start of the recording.
    pub from_ns: Option<u64>,
    /// Only what lived before this time, likewise.
    pub until_ns: Option<u64>,
    /// Only what lived at least so long.
    pub min_life_ns: Option<u64>,
}

/// How the rows of a Gantt chart follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GanttOrder {
    /// By birth.
    #[default]
    Time,
    /// Children below their parent, by birth.
    Tree,
    /// By category; those that do not overlap share a row.
    Category,
}

/// A kind of bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// What is in it.
    pub name: String,
    /// How many processes.
    pub processes: u64,
    /// How many threads beside each process's first, where they are shown.
    pub threads: u64,
    /// Whether it holds whatever has no lane of its own.
    pub is_rest: bool,
}

/// One process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Index of its lane.
    pub lane: u32,
    /// What it ran, as an index of the names.
    pub name: u32,
    /// Its pid, or the pid of its process.
    pub pid: i32,
    /// From the start of the recording.
    pub begin_ns: u64,
    /// Likewise; the end of the recording if it was still alive.
    pub end_ns: u64,
    /// How deep it is in what is shown of the tree.
    pub depth: u32,
    /// Index of the bar of the nearest ancestor that is shown.
    pub parent: Option<u32>,
    /// Whether it is a thread beside its process's first.
    pub is_thread: bool,
}

/// A quantity over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Strip {
    /// What it is, without the unit.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// One value for each bin each; they add up.
    pub series: Vec<Series>,
    /// Whether a series has the colour of the lane with its number.
    pub by_lane: bool,
    /// What was asked for; what lies above is marked.
    pub limit: Option<Mark>,
}
