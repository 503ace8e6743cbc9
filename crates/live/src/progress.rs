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

/// One line: time, processes so far, alive, births per second, CPU time, losses. `before` are the
/// births and the time at the previous line: the rate is that of the time between.
pub fn progress_line(view: &View, before: Option<(u64, u64)>) -> String {
    let (births, elapsed_ns) = (view.totals.processes, view.elapsed_ns());
    let (births_before, ns_before) = before.unwrap_or_default();
    let over_ns = elapsed_ns.saturating_sub(ns_before);
    let rate = match over_ns {
        0 => "-".to_owned(),
        _ => format!("{:.1}", births.saturating_sub(births_before) as f64 * 1e9 / over_ns as f64),
    };
    format!(
        "{}: {}, {} alive, {rate} forks/s, CPU {} ({} of {}), {} lost",
        time(elapsed_ns),
        counted(births, "process", "processes"),
        count(view.alive() as u64),
        cpu_time(view, view.totals.cpu_ns),
        or_dash(view.known(Figure::CpuNs, view.cpu.per_second(view.now_ns())), cpus),
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
