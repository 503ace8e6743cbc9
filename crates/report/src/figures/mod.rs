//! Figures as SVG: one file per kind, one look for all.

use proctrace_findings::{Chart, ChartBody};

use crate::gantt::{GanttError, gantt_svg};

/// A figure as SVG.
///
/// # Errors
/// When plotters refuses, which would be a fault of ours.
pub fn chart_svg(chart: &Chart) -> Result<String, GanttError> {
    match &chart.body {
        ChartBody::Gantt(gantt) => gantt_svg(gantt),
        _ => Err(GanttError::new("no one draws this kind of figure yet")),
    }
}
