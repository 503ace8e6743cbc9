//! Activity of the whole tree, above the bars and on the same time axis.

use std::fmt::Write as _;

use proctrace_findings::{Axis, Gantt, Strip};

use super::{RIGHT_COLUMN, TimeAxis, colour};
use crate::figures::look::{self, AXIS, FAINT_INK, GAP, GRID, HEADING, MARK, MORE, TICK};
use crate::figures::page::{Page, Swatch};
use crate::figures::scale::Scale;
use crate::figures::svg::{Pen, px};

const HEIGHT: f64 = 66.0;
const BETWEEN: f64 = 16.0;
const LINE: f64 = 14.5;
const UNKNOWN: &str = GRID;
/// Maximum legend entries that fit beside a strip, below its name.
const ENTRIES_MAX: usize = 4;
const LIMIT: Pen = Pen::dashed(MARK, 1.2);
/// Tolerance for rounding, so that it does not count as exceeding the limit.
const SLACK: f64 = 1.01;

pub(super) fn draw(page: &mut Page, gantt: &Gantt, time_axis: &TimeAxis) {
    for strip in &gantt.strips {
        let top = page.take(HEIGHT + BETWEEN);
        draw_strip(page, gantt, strip, time_axis, top);
    }
    page.y -= BETWEEN / 2.0;
}

/// Runs of bins in which no series has a value.
fn unknown(strip: &Strip, bins: usize) -> Vec<std::ops::Range<usize>> {
    let known = |bin: usize| {
        strip.series.iter().any(|series| series.values.get(bin).is_some_and(Option::is_some))
    };
    let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
    for bin in (0..bins).filter(|bin| !known(*bin)) {
        match stretches.last_mut() {
            Some(last) if last.end == bin => last.end += 1,
            _ => stretches.push(bin..bin + 1),
        }
    }
    stretches
}

fn draw_strip(page: &mut Page, gantt: &Gantt, strip: &Strip, time_axis: &TimeAxis, top: f64) {
    let bottom = top + HEIGHT;
    let tops = stacked(strip, gantt.edges_ns.len().saturating_sub(1));
    let total = &tops[tops.len() - 1];
    let limit = strip.limit.as_ref().map(|mark| mark.at);
    let axis = Axis::linear(&*strip.title, strip.unit);
    let scale = Scale::of(&axis, total.iter().copied().chain(limit), 2);
    let y_at = |value: f64| bottom - HEIGHT * scale.part(value);

    time_axis.draw_grid(page, top, bottom);
    for tick in scale.ticks() {
        let y = y_at(tick.at);
        page.svg.line((time_axis.left, y), (time_axis.right, y), Pen::of(GRID, 1.0));
        page.svg.text(time_axis.left - GAP, y, &tick.label, TICK.end());
    }
    let many = strip.series.len();
    let colour = |at: usize| {
        if strip.by_lane { colour(gantt, at) } else { look::series(at, many) }
    };
    // Unknown bins must not be shown as zero.
    let unknown = unknown(strip, gantt.edges_ns.len().saturating_sub(1));
    for bins in &unknown {
        let edge =
            |bin: usize| time_axis.x_at(gantt.edges_ns[bin].clamp(gantt.from_ns, gantt.until_ns));
        let (left, right) = (edge(bins.start), edge(bins.end));
        page.svg.rect(left, top, right - left, HEIGHT, UNKNOWN);
    }
    let steps = |from: &[f64], to: &[f64]| steps(gantt, time_axis, &y_at, from, to);
    for at in 0..many {
        page.svg.fill(&steps(&tops[at], &tops[at + 1]), colour(at), 0.9);
    }
    let mut is_over = false;
    if let Some(limit) = limit {
        let over: Vec<f64> = total.iter().map(|total| total.max(limit)).collect();
        is_over = total.iter().any(|total| *total > limit * SLACK);
        if is_over {
            let path = steps(&vec![limit; over.len()], &over);
            page.svg.fill(&path, MORE, 0.8);
            page.svg.stroke(&path, Pen::of(MORE, 0.8));
        }
        page.svg.line((time_axis.left, y_at(limit)), (time_axis.right, y_at(limit)), LIMIT);
    }
    page.svg.line((time_axis.left, bottom), (time_axis.right, bottom), Pen::of(AXIS, 1.0));
    page.svg.line((time_axis.left, top), (time_axis.left, bottom), Pen::of(AXIS, 1.0));

    // The name of the strip, to the right of it.
    let x = time_axis.right + 2.0 * GAP;
    let mut y = top + LINE / 2.0 - 3.0;
    let room = RIGHT_COLUMN - 2.0 * GAP;
    page.svg.text(x, y, &HEADING.fit(&scale.title(), room), HEADING);
    let mut entries = Vec::new();
    if strip.by_lane {
        y += LINE;
        page.svg.text(x, y, "colours as below", TICK.colour(FAINT_INK));
    } else {
        let series = strip.series.iter().enumerate();
        entries.extend(series.map(|(at, series)| (Swatch::Area(colour(at)), &*series.name)));
    }
    if let Some(limit) = &strip.limit {
        entries.push((Swatch::Line(LIMIT), &limit.name));
    }
    if is_over {
        entries.push((Swatch::Area(MORE), "above this limit"));
    }
    // There is no room for more beside a strip; only strips without a limit have unknown bins.
    if !unknown.is_empty() && entries.len() < ENTRIES_MAX {
        entries.push((Swatch::Area(UNKNOWN), "not known"));
    }
    for (swatch, name) in entries {
        y += LINE;
        page.swatch(x, y, swatch);
        page.svg.text(x + 18.0, y, &TICK.fit_name(name, room - 18.0), TICK);
    }
}

/// Cumulative sums over the series, from none to all, for every bin.
fn stacked(strip: &Strip, bins: usize) -> Vec<Vec<f64>> {
    let mut tops = vec![vec![0.0; bins]];
    for series in &strip.series {
        let below = &tops[tops.len() - 1];
        let value = |bin: usize| series.values.get(bin).copied().flatten().unwrap_or(0.0);
        tops.push(
            below.iter().enumerate().map(|(bin, below)| below + value(bin).max(0.0)).collect(),
        );
    }
    tops
}

/// The area between two levels that are constant within each bin.
fn steps(
    gantt: &Gantt,
    time_axis: &TimeAxis,
    y_at: &dyn Fn(f64) -> f64,
    from: &[f64],
    to: &[f64],
) -> String {
    let edges: Vec<f64> = gantt
        .edges_ns
        .iter()
        .map(|edge| time_axis.x_at((*edge).clamp(gantt.from_ns, gantt.until_ns)))
        .collect();
    let mut path = String::new();
    // Invisible stretches are left out.
    let same = |bin: usize| (y_at(from[bin]) - y_at(to[bin])).abs() < 0.05;
    let mut bin = 0;
    while bin < from.len() {
        if same(bin) {
            bin += 1;
            continue;
        }
        let begin = bin;
        while bin < from.len() && !same(bin) {
            bin += 1;
        }
        // Writing to a String cannot fail.
        let _ = write!(path, "M{} {}", px(edges[begin]), px(y_at(from[begin])));
        for at in begin..bin {
            let _ = write!(path, "V{}H{}", px(y_at(to[at])), px(edges[at + 1]));
        }
        for at in (begin..bin).rev() {
            let _ = write!(path, "V{}H{}", px(y_at(from[at])), px(edges[at]));
        }
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::{Series, Unit};

    #[test]
    fn bins_without_any_value_are_not_known() {
        let series =
            |values: &[Option<f64>]| Series { name: String::new(), values: values.to_vec() };
        let strip = Strip {
            title: "Tasks".into(),
            unit: Unit::Count,
            series: vec![
                series(&[None, None, Some(1.0), None]),
                series(&[None, None, None, Some(0.0)]),
            ],
            by_lane: false,
            limit: None,
        };
        assert_eq!(unknown(&strip, 5), [0..2, 4..5]);
    }
}
