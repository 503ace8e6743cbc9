//! The life of every process on one axis of time.

use serde::Serialize;

/// Every process as a bar.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gantt {
    /// What it shows.
    pub title: String,
    /// Length of the axis.
    pub wall_ns: u64,
    /// CPUs the command might use.
    pub cores: u32,
    /// The kinds of bars, each with a colour, the one with most processes first.
    pub lanes: Vec<Lane>,
    /// One per process, in order of their birth.
    pub bars: Vec<Bar>,
    /// Width of a bin of the strips.
    pub bin_ns: u64,
    /// CPUs busy in user mode, by bin.
    pub user_cores: Vec<f64>,
    /// CPUs busy in the kernel, by bin.
    pub system_cores: Vec<f64>,
    /// Forks per second, threads included, by bin.
    pub forks_per_second: Vec<f64>,
}

/// A kind of bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// What is in it.
    pub name: String,
    /// How many processes.
    pub processes: u64,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Index of its lane.
    pub lane: usize,
    /// What it ran.
    pub name: String,
    /// Its pid.
    pub pid: i32,
    /// From the start of the axis.
    pub begin_ns: u64,
    /// Likewise; the end of the axis if it was still alive.
    pub end_ns: u64,
    /// How deep it is in the tree; the command is 0.
    pub depth: u32,
}
