//! Charts of a series: throughput and memory per worker, against workers and each other.

use std::collections::BTreeSet;

use proctrace_findings::{Axis, Chart, ChartBody, Lines, Mark, Point, Scatter, Series, Unit};

use super::{Group, SeriesRun, label};

pub(super) fn charts(groups: &[Group<'_>], knee_percent: f64) -> Vec<Chart> {
    let rate = SeriesRun::rate_per_worker;
    let throughput = by_workers(groups, Axis::linear("events per worker", Unit::PerSecond), rate)
        .map(|lines| {
            let ideal = groups.iter().filter_map(|group| {
                let (workers, rate) = group.means(rate).into_iter().next()?;
                let of = if groups.len() > 1 {
                    format!(" ({})", label(group.name))
                } else {
                    String::new()
                };
                Some(Mark { at: rate, name: format!("as at {workers}{of}") })
            });
            let knees = groups.iter().filter_map(|group| {
                let (workers, percent) = group.knee(knee_percent)?;
                Some(Mark { at: workers as f64, name: format!("{percent:.0} %") })
            });
            let lines = Lines { marks: ideal.collect(), moments: knees.collect(), ..lines };
            Chart::new("series_throughput", "Events per second and worker", ChartBody::Lines(lines))
                .note(format!(
                    "Horizontal: rate per worker at the fewest workers of each group. Vertical: \
                     efficiency falls below {knee_percent} %."
                ))
        });
    let memory = by_workers(
        groups,
        Axis::linear("memory per worker", Unit::Bytes),
        SeriesRun::memory_per_worker,
    )
    .map(|lines| {
        Chart::new("series_memory", "Memory per worker", ChartBody::Lines(lines))
            .note("Mean over all readings, or the peak if there were none.")
    });
    [throughput, memory, throughput_by_memory(groups)].into_iter().flatten().collect()
}

/// One line per group; `None` if no run has the value.
fn by_workers(
    groups: &[Group<'_>],
    y_axis: Axis,
    figure: fn(&SeriesRun) -> Option<f64>,
) -> Option<Lines> {
    let means: Vec<_> = groups.iter().map(|group| group.means(figure)).collect();
    let x: BTreeSet<u64> = means.iter().flat_map(|means| means.keys().copied()).collect();
    if x.is_empty() {
        return None;
    }
    let series = groups
        .iter()
        .zip(&means)
        .map(|(group, means)| Series {
            name: label(group.name),
            values: x.iter().map(|workers| means.get(workers).copied()).collect(),
        })
        .collect();
    Some(Lines {
        x_axis: Axis::logarithmic("workers", Unit::Count),
        y_axis,
        x: x.into_iter().map(|workers| workers as f64).collect(),
        series,
        stacked: false,
        points: true,
        marks: Vec::new(),
        moments: Vec::new(),
    })
}

fn throughput_by_memory(groups: &[Group<'_>]) -> Option<Chart> {
    let most = groups.iter().flat_map(|group| &group.runs).map(|run| run.workers).max()?;
    let points: Vec<Point> = groups
        .iter()
        .flat_map(|group| group.runs.iter().map(move |run| (group, run)))
        .filter_map(|(group, run)| {
            let of =
                if groups.len() > 1 { format!("{} ", label(group.name)) } else { String::new() };
            Some(Point {
                x: run.memory_per_worker()?,
                y: run.rate_per_worker()?,
                weight: run.workers as f64 / most.max(1) as f64,
                name: format!("{of}{}", run.workers),
            })
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let body = Scatter {
        x_axis: Axis::linear("memory per worker", Unit::Bytes),
        y_axis: Axis::linear("events per worker", Unit::PerSecond),
        points,
    };
    let title = "Events per second and worker, by memory";
    Some(
        Chart::new("series_throughput_memory", title, ChartBody::Scatter(body))
            .note("Each point is a run, labelled with its number of workers."),
    )
}
