//! The state of a recording in one line, for logs, and its figures as text.

use proctrace_findings::Figure;
use proctrace_report::number::{count, counted, or_dash, time};

use crate::state::View;

/// State of a recording: still being made, complete, or left incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// A recorder is writing the trace.
    Recording,
    /// The trace is complete.
    Ended,
    /// The trace is incomplete, and nobody writes the rest.
    Abandoned,
}

/// The sums at one line: the rates of the next are those of the time between.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    births: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
}

impl Progress {
    /// Those up to now.
    pub fn of(view: &View) -> Self {
        let (births, cpu_ns) = (view.totals.processes, view.totals.cpu_ns);
        Self { births, elapsed_ns: view.elapsed_ns(), cpu_ns }
    }
}

/// One line: time, processes so far, alive, births per second, CPU time, CPUs in use, losses. Both rates are those since
/// the line before, or since the beginning.
pub fn progress_line(view: &View, before: Progress) -> String {
    let now = Progress::of(view);
    let over_ns = now.elapsed_ns.saturating_sub(before.elapsed_ns);
    let per_second = |more: u64| (over_ns > 0).then(|| more as f64 * 1e9 / over_ns as f64);
    let births = per_second(now.births.saturating_sub(before.births));
    let cpu_ns = per_second(now.cpu_ns.saturating_sub(before.cpu_ns));
    // CPU time comes late, with a sample or an end.
    let at_most = 1e9 * f64::from(view.header().cpus);
    let cpu_ns = cpu_ns.map(|cpu_ns| cpu_ns.min(at_most));
    format!(
        "{}: {}, {} alive, {} forks/s, CPU {} ({} of {}), {} lost",
        time(now.elapsed_ns),
        counted(now.births, "process", "processes"),
        count(view.alive() as u64),
        or_dash(births, |births| format!("{births:.1}")),
        cpu_time(view, now.cpu_ns),
        or_dash(cpu_ns.and_then(|cpu_ns| view.known(Figure::CpuNs, cpu_ns)), cpus),
        view.header().cpus,
        count(view.losses.total()),
    )
}

/// CPU time; "-" in a recording without.
pub fn cpu_time(view: &View, cpu_ns: u64) -> String {
    or_dash(view.known(Figure::CpuNs, cpu_ns), time)
}

/// CPU time per second, in CPUs.
pub fn cpus(ns_per_second: f64) -> String {
    format!("{:.2}", ns_per_second / 1e9)
}
