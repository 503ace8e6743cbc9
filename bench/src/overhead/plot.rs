//! A chart of the wall times: one panel per payload, with a dot and its interval per tracer.

use std::path::Path;

use anyhow::{Context, Result};
use proctrace_findings::{Axis, Chart, ChartBody, Estimate, IntervalGroup, Intervals, Unit};
use proctrace_report::PictureFormat;
use proctrace_stats::FEWEST_FOR_MEDIAN_INTERVAL;

use super::results::{PayloadResults, Results, Row};
use super::tracers::NONE;

/// Draws the chart to a file, as SVG or PNG.
pub(super) fn draw(results: &Results, file: &Path) -> Result<()> {
    let format = PictureFormat::of(file).context("charts are SVG or PNG: .svg or .png")?;
    std::fs::write(file, format.chart(&chart(results))?)
        .with_context(|| format!("cannot write {}", file.display()))
}

fn chart(results: &Results) -> Chart {
    let body = ChartBody::Intervals(Intervals {
        axis: Axis::logarithmic("multiple of the bare run", Unit::Ratio),
        reference: Some(1.0),
        groups: results.payloads.iter().map(group).collect(),
    });
    let machine = &results.machine;
    let most = results.payloads.iter().flat_map(|p| &p.rows).map(|row| row.pairs.len()).max();
    let interval = if most.unwrap_or(0) < FEWEST_FOR_MEDIAN_INTERVAL {
        "Median of pairs of runs, with their range.".to_owned()
    } else {
        format!(
            "Median of pairs of runs, 95 % interval (fewer than {FEWEST_FOR_MEDIAN_INTERVAL} pairs: \
             range)."
        )
    };
    Chart::new("overhead", "Wall time of the payload under each tracer", body)
        .note(format!("{interval} Grey: a bare run against another."))
        .note(
            "Filled: records every fork, exec, exit and failed open. Hollow: misses some, or does \
             not record them.",
        )
        .note(format!("{} CPUs, {}, {}", machine.cpus, machine.processor, machine.kernel))
}

fn group(payload: &PayloadResults) -> IntervalGroup {
    let bare = payload.rows.iter().find(|row| row.tracer == NONE);
    let noise = bare.and_then(|row| Some(row.summary.as_ref()?.payload_wall));
    let estimate = |row: &Row| {
        let wall = row.summary.as_ref()?.payload_wall;
        Some(Estimate {
            name: row.tracer.clone(),
            value: wall.median,
            low: wall.low,
            high: wall.high,
            comparable: complete(row, payload),
        })
    };
    IntervalGroup {
        name: payload.name.clone(),
        noise: noise.map(|wall| (wall.low, wall.high)),
        estimates: payload
            .rows
            .iter()
            .filter(|row| row.tracer != NONE)
            .filter_map(estimate)
            .collect(),
    }
}

/// Returns whether a tracer recorded every event of every kind in every round.
fn complete(row: &Row, payload: &PayloadResults) -> bool {
    row.pairs.iter().all(|pair| {
        let letters = pair.traced.seen.counts.letters(payload.declared);
        !letters.contains(['-', '!'])
    })
}
