//! Figures as SVG: one file per kind, in a common style.
//!
//! They are written without a plotting library: guaranteeing that nothing is cut and nothing
//! overlaps requires the width of every text before it is drawn, and a chart of 70,000 processes
//! needs paths that no library produces.

mod bars;
pub mod extent;
mod flame;
mod gantt;
mod heat_map;
mod histogram;
mod intervals;
mod lines;
mod look;
mod page;
mod plot;
mod row_plot;
mod scale;
mod scatter;
mod svg;
mod waterfall;

use proctrace_findings::{Chart, ChartBody, Gantt};

/// A figure as SVG.
pub fn chart_svg(chart: &Chart) -> String {
    match &chart.body {
        ChartBody::Bars(bars) => bars::draw(chart, bars),
        ChartBody::Lines(lines) => lines::draw(chart, lines),
        ChartBody::Histogram(histogram) => histogram::draw(chart, histogram),
        ChartBody::HeatMap(map) => heat_map::draw(chart, map),
        ChartBody::Scatter(scatter) => scatter::draw(chart, scatter),
        ChartBody::Gantt(gantt) => gantt::draw(gantt, &chart.notes),
        ChartBody::Flame(flame) => flame::draw(chart, flame),
        ChartBody::Intervals(intervals) => intervals::draw(chart, intervals),
        ChartBody::Waterfall(waterfall) => waterfall::draw(chart, waterfall),
    }
}

/// The lifetime of every process as SVG.
pub fn gantt_svg(gantt: &Gantt) -> String {
    gantt::draw(gantt, &[])
}
