//! Synthetic data as supplied by the sections of a report.

mod charts;
mod gantt;

use proctrace_findings::{Chart, ChartBody, GanttOrder, Mark, Series};

use self::charts::{
    accounting, concurrency, correlations, counts, flame, intervals, lifetimes, phases, scaling,
    stacked_lines, switches, waterfall,
};
use self::gantt::gantt;

/// A figure, its name, and texts that it must contain.
type Sample = (&'static str, Chart, Vec<String>);

fn series(name: &str, values: impl IntoIterator<Item = f64>) -> Series {
    Series { name: name.into(), values: values.into_iter().map(Some).collect() }
}

fn mark(at: f64, name: &str) -> Mark {
    Mark { at, name: name.into() }
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(String::from).into()
}

/// A deterministic pseudo-random sequence (SplitMix64).
fn noise(at: usize) -> f64 {
    let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 40) as f64 / (1_u64 << 24) as f64
}

pub(crate) fn all() -> Vec<Sample> {
    vec![
        counts(),
        accounting(),
        lifetimes(),
        concurrency(),
        correlations(),
        switches(),
        phases(),
        stacked_lines(),
        scaling(),
        waterfall(),
        intervals(),
        flame(),
        gantt("gantt-60", 60, GanttOrder::Tree, true),
        gantt("gantt-5000", 5_000, GanttOrder::Time, false),
        gantt("gantt-5000-tree", 5_000, GanttOrder::Tree, true),
        gantt("gantt-70000", 70_000, GanttOrder::Time, false),
        gantt("gantt-70000-category", 70_000, GanttOrder::Category, false),
    ]
}

/// Every kind of figure, with this name used throughout.
pub(crate) fn named(name: &str) -> Vec<(&'static str, Chart)> {
    let mut all = all();
    for (_, chart, _) in &mut all {
        chart.title = name.to_owned();
        chart.notes = vec![name.to_owned()];
        let rename = |text: &mut String| *text = name.to_owned();
        let rename_series =
            |all: &mut Vec<Series>| all.iter_mut().for_each(|s| rename(&mut s.name));
        let rename_marks =
            |all: &mut Vec<Mark>| all.iter_mut().for_each(|mark| rename(&mut mark.name));
        match &mut chart.body {
            ChartBody::Bars(bars) => {
                bars.rows.iter_mut().for_each(rename);
                rename(&mut bars.axis.title);
                rename_series(&mut bars.series);
            }
            ChartBody::Lines(lines) => {
                rename(&mut lines.x_axis.title);
                rename(&mut lines.y_axis.title);
                rename_series(&mut lines.series);
                rename_marks(&mut lines.marks);
                rename_marks(&mut lines.moments);
            }
            ChartBody::Histogram(histogram) => {
                rename(&mut histogram.axis.title);
                rename_series(&mut histogram.series);
                rename_marks(&mut histogram.marks);
            }
            ChartBody::HeatMap(map) => map.names.iter_mut().for_each(rename),
            ChartBody::Scatter(scatter) => {
                scatter.points.iter_mut().for_each(|point| rename(&mut point.name));
            }
            ChartBody::Flame(flame) => {
                rename(&mut flame.weighs);
                flame.folded = vec![format!("{name};{name} 3"), format!("{name} 1")];
            }
            ChartBody::Intervals(intervals) => {
                for group in &mut intervals.groups {
                    rename(&mut group.name);
                    group.estimates.iter_mut().for_each(|estimate| rename(&mut estimate.name));
                }
            }
            ChartBody::Waterfall(waterfall) => {
                rename(&mut waterfall.start.name);
                rename(&mut waterfall.end.name);
                waterfall.steps.iter_mut().for_each(|step| rename(&mut step.name));
            }
            ChartBody::Gantt(gantt) => {
                rename(&mut gantt.title);
                gantt.names.iter_mut().for_each(rename);
                gantt.lanes.iter_mut().for_each(|lane| rename(&mut lane.name));
                gantt.view.subtree = Some(name.to_owned());
                for strip in &mut gantt.strips {
                    rename(&mut strip.title);
                    rename_series(&mut strip.series);
                    strip.limit.iter_mut().for_each(|limit| rename(&mut limit.name));
                }
            }
        }
    }
    all.into_iter().map(|(kind, chart, _)| (kind, chart)).collect()
}
