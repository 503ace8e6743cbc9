//! Values over a continuous axis: lines, stacked areas, or measurements as points.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::series::LineSeries;
use proctrace_findings::{Chart, Lines};

use super::backend::{Drawn, Size, Surface};
use super::elements::{Areas, Marker, Pen};
use super::look;
use super::page::{Page, Swatch};
use super::plot::{Plot, Surroundings};
use super::scale::{Scale, Tick};

const HEIGHT: f64 = 340.0;
/// Above this number of values neighbours become indistinguishable at the given width: of each
/// group only the lowest and the highest are drawn, so that no spike is lost.
const VALUES_MAX: usize = 1200;
const NEIGHBOURHOODS: usize = VALUES_MAX / 2;
/// Maximum fraction of the width left empty before the first value.
const EMPTY_MAX: f64 = 1.0 / 3.0;
/// Up to this number of measurements, each has its own tick.
const TICKS_OF_POINTS_MAX: usize = 12;

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    lines: &Lines,
) -> Drawn<Size> {
    let mut notes = chart.notes.clone();
    let curves = Curves::of(lines, &mut notes);
    let mut page = Page::of(canvas, chart)?;
    if lines.series.len() > 1 || !lines.marks.is_empty() {
        page.legend(&legend(lines))?;
    }
    let y_values = curves.tops.iter().flatten().flatten().copied();
    let marks = lines.marks.iter().map(|mark| mark.at);
    let y_scale = Scale::of(&lines.y_axis, y_values.chain(marks), 6);
    let x_scale = curves.x_scale(lines);
    let known = || curves.x.iter().flatten();
    let x_ticks = (lines.points && known().count() <= TICKS_OF_POINTS_MAX)
        .then(|| known().map(|at| Tick { at: *at, label: x_scale.value(*at) }).collect());
    let around = Surroundings { marks: &lines.marks, moments: &lines.moments, x_ticks };
    let mut plot = Plot::new(&mut page, HEIGHT, x_scale, y_scale, &around)?;
    for series in 0..curves.tops.len() {
        if lines.stacked {
            curves.draw_area(&plot, lines, series)?;
        } else {
            curves.draw_line(&mut plot, lines, series)?;
        }
    }
    plot.draw_moments(&lines.moments)?;
    plot.draw_marks(&page, &lines.marks)?;
    page.finish(&notes)
}

fn colour(lines: &Lines, series: usize) -> look::Colour {
    look::series_named(&lines.series[series].name, series, lines.series.len())
}

fn legend(lines: &Lines) -> Vec<(Swatch, String)> {
    let swatch = |at: usize| match colour(lines, at) {
        colour if lines.stacked => Swatch::Area(colour),
        colour => Swatch::Line(Pen::of(colour, 2.5)),
    };
    let names = lines.series.iter().enumerate();
    names.map(|(at, series)| (swatch(at), series.name.clone())).collect()
}

/// The values that are drawn.
struct Curves {
    x: Vec<Option<f64>>,
    /// The upper edge of each series; stacked series include those below.
    tops: Vec<Vec<Option<f64>>>,
    /// The edges of bins. Stacked series over time are sums per bin and constant within a bin: a
    /// slope between centres would start before the first non-empty bin.
    edges: Option<Vec<f64>>,
}

impl Curves {
    /// The finite values of a chart, thinned out if there are too many to distinguish.
    fn of(lines: &Lines, notes: &mut Vec<String>) -> Self {
        let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
        let series = lines.series.iter().map(|series| series.values.iter().map(finite).collect());
        let series: Vec<Vec<Option<f64>>> = series.collect();
        let mut tops = if lines.stacked { stack(&series) } else { series };
        let mut x: Vec<Option<f64>> = lines.x.iter().map(|x| finite(&Some(*x))).collect();
        if x.len() > VALUES_MAX {
            let of = x.len().div_ceil(NEIGHBOURHOODS);
            let shown = extremes(&tops, x.len(), of);
            let pick = |values: &[Option<f64>]| -> Vec<Option<f64>> {
                shown.iter().map(|at| values.get(*at).copied().flatten()).collect()
            };
            x = pick(&x);
            tops = tops.iter().map(|values| pick(values)).collect();
            notes.push(format!(
                "Of every {of} adjacent values only the lowest and highest are drawn."
            ));
        }
        let edges = (lines.stacked && !lines.points).then(|| edges(&x));
        Self { x, tops, edges }
    }

    fn x_scale(&self, lines: &Lines) -> Scale {
        let known: Vec<f64> = self.x.iter().flatten().copied().collect();
        let moments = lines.moments.iter().map(|moment| moment.at);
        let ends = self.edges.iter().flatten().copied();
        let all = known.iter().copied().chain(moments.clone()).chain(ends);
        let scale = Scale::exact(&lines.x_axis, all, 9);
        if lines.points {
            // Measurements are kept away from the edges.
            return match (lines.x_axis.logarithmic, known.first(), known.last()) {
                (true, Some(first), Some(last)) => scale.between(first / 1.2, last * 1.2),
                (false, _, Some(last)) => scale.between(0.0, last * 1.05),
                _ => scale,
            };
        }
        match first_shown(&self.x, &self.tops, self.edges.as_deref(), moments) {
            Some((first, last)) if !lines.x_axis.logarithmic => {
                let empty = (first - scale.low()) / (last - scale.low());
                if empty > EMPTY_MAX { scale.between(first, last) } else { scale }
            }
            _ => scale,
        }
    }

    fn place(&self, at: usize, value: f64) -> Option<(f64, f64)> {
        Some(((*self.x.get(at)?)?, value))
    }

    fn draw_area<S: Surface>(&self, plot: &Plot<S>, lines: &Lines, series: usize) -> Drawn {
        let below = series.checked_sub(1).map(|below| &self.tops[below]);
        let base = |i: usize| below.and_then(|b| b.get(i).copied().flatten()).unwrap_or(0.0);
        let values = &self.tops[series];
        let areas = match &self.edges {
            Some(edges) => areas(values, &base, &|at, value| {
                let edge = |at: usize| edges.get(at).map(|edge| (*edge, value));
                edge(at).into_iter().chain(edge(at + 1)).collect()
            }),
            None => areas(values, &base, &|at, value| self.place(at, value).into_iter().collect()),
        };
        plot.chart.plotting_area().draw(&Areas::new(areas, colour(lines, series), 0.85))
    }

    fn draw_line<S: Surface>(&self, plot: &mut Plot<S>, lines: &Lines, series: usize) -> Drawn {
        let places: Vec<Option<(f64, f64)>> = self.tops[series]
            .iter()
            .enumerate()
            .map(|(at, value)| self.place(at, (*value)?))
            .collect();
        let colour = colour(lines, series);
        // An unknown value leaves a gap.
        for run in places.split(Option::is_none) {
            let style = Pen::of(colour, 2.0).of_plotters();
            plot.chart.draw_series(LineSeries::new(run.iter().copied().flatten(), style))?;
        }
        if lines.points {
            let markers = places.into_iter().flatten().map(|at| Marker { at, series, colour });
            plot.chart.draw_series(markers)?;
        }
        Ok(())
    }
}

/// The bin edges, one more than there are bins: halfway between the centres, but not below zero.
fn edges(middles: &[Option<f64>]) -> Vec<f64> {
    let middles: Vec<f64> = middles.iter().map(|middle| middle.unwrap_or(0.0)).collect();
    let between = middles.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let half = |pair: Option<&[f64]>| pair.map_or(0.0, |pair| (pair[1] - pair[0]) / 2.0);
    let first = middles.first().map(|first| (first - half(middles.windows(2).next())).max(0.0));
    let last = middles.last().map(|last| last + half(middles.windows(2).last()));
    first.into_iter().chain(between).chain(last).collect()
}

/// The range to show: from the first non-zero value, or the first moment if that is earlier, to the
/// end.
fn first_shown(
    x: &[Option<f64>],
    tops: &[Vec<Option<f64>>],
    edges: Option<&[f64]>,
    moments: impl Iterator<Item = f64>,
) -> Option<(f64, f64)> {
    let has =
        |at: usize| tops.iter().any(|v| v.get(at).copied().flatten().is_some_and(|v| v != 0.0));
    let at = (0..x.len()).find(|at| has(*at))?;
    let first = edges.and_then(|edges| edges.get(at).copied()).or(x[at])?;
    let last = edges.and_then(|edges| edges.last().copied()).or(*x.last()?)?;
    let (first, last) = moments.fold((first, last), |(a, b), at| (a.min(at), b.max(at)));
    Some((first, last))
}

/// Each run of known values as an area above its base. `corners` are those of a value, from left to
/// right.
fn areas(
    values: &[Option<f64>],
    base: &dyn Fn(usize) -> f64,
    corners: &dyn Fn(usize, f64) -> Vec<(f64, f64)>,
) -> Vec<Vec<(f64, f64)>> {
    let mut areas = Vec::new();
    let known = |i: usize| values.get(i).copied().flatten();
    let mut i = 0;
    while i < values.len() {
        let begin = i;
        while known(i).is_some() {
            i += 1;
        }
        let upper = (begin..i).flat_map(|i| known(i).map_or_else(Vec::new, |v| corners(i, v)));
        let lower = (begin..i).rev().flat_map(|i| corners(i, base(i)).into_iter().rev());
        if begin < i {
            areas.push(upper.chain(lower).collect());
        }
        i += 1;
    }
    areas
}

/// Cumulative sums over the series.
fn stack(series: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let mut sums: Vec<f64> = vec![0.0; series.iter().map(Vec::len).max().unwrap_or(0)];
    series
        .iter()
        .map(|values| {
            values
                .iter()
                .zip(&mut sums)
                .map(|(value, sum)| {
                    *sum += value.unwrap_or(0.0);
                    Some(*sum)
                })
                .collect()
        })
        .collect()
}

/// Indices of the lowest and the highest value of each series in each group of neighbours.
fn extremes(series: &[Vec<Option<f64>>], len: usize, of: usize) -> Vec<usize> {
    let mut shown = Vec::new();
    for begin in (0..len).step_by(of.max(1)) {
        let first = shown.len();
        for values in series {
            let known = (begin..(begin + of).min(len))
                .filter_map(|at| values.get(at).copied().flatten().map(|value| (at, value)));
            shown.extend(known.clone().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
            shown.extend(known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at));
        }
        // Unknown values leave a gap.
        if shown.len() == first {
            shown.push(begin);
        }
        shown[first..].sort_unstable();
    }
    shown.dedup();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spike_is_lost() {
        let mut values = vec![Some(1.0); 10];
        values[3] = Some(99.0);
        values[8] = Some(-5.0);
        values[9] = None;
        let shown = extremes(&[values], 10, 5);
        assert!(shown.contains(&3) && shown.contains(&8), "{shown:?}");
        assert!(shown.len() <= 4 && shown.is_sorted());
        assert_eq!(extremes(&[vec![None; 6]], 6, 3), [0, 3]);
    }

    #[test]
    fn bins_have_edges_and_steps() {
        assert_eq!(edges(&[Some(1.0), Some(3.0), Some(5.0)]), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(edges(&[Some(1.0)]), [1.0, 1.0]);
        assert!(edges(&[]).is_empty());
        let corners = |at: usize, value: f64| vec![(at as f64, value), (at as f64 + 1.0, value)];
        let areas = areas(&[Some(2.0), Some(1.0), None, Some(3.0)], &|_| 0.0, &corners);
        let first = [(0, 2), (1, 2), (1, 1), (2, 1), (2, 0), (1, 0), (1, 0), (0, 0)];
        let second = [(3, 3), (4, 3), (4, 0), (3, 0)];
        let real = |(x, y): (i32, i32)| (f64::from(x), f64::from(y));
        assert_eq!(areas, [first.map(real).to_vec(), second.map(real).to_vec()]);
    }

    #[test]
    fn areas_stand_on_each_other() {
        let series = [vec![Some(1.0), None], vec![Some(2.0), Some(3.0)]];
        assert_eq!(stack(&series), [[Some(1.0), Some(0.0)], [Some(3.0), Some(3.0)]]);
    }
}
