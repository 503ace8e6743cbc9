//! The state of a recording in one line, for logs.

use proctrace_findings::Figure;
use proctrace_report::number::{count, counted, or_dash, time};

use super::paint::{cpu_time, cpus};
use crate::state::View;

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
