//! Activity of the whole tree, above the bars and on the same time axis.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{PathElement, Rectangle};
use plotters::style::Color as _;
use proctrace_findings::{Axis, Gantt, Strip};

use super::{RIGHT_COLUMN, TimeAxis, colour};
use crate::figures::backend::{Drawn, Surface, Way, units};
use crate::figures::coordinates::Ticked;
use crate::figures::elements::{Areas, Pen, drawn_as};
use crate::figures::look::{self, AXIS, FAINT_INK, GAP, GRID, HEADING, MARGIN, MARK, MORE, TICK};
use crate::figures::page::{Page, Swatch};
use crate::figures::scale::Scale;

const HEIGHT: f64 = 66.0;
const BETWEEN: f64 = 16.0;
const LINE: f64 = 14.5;
const UNKNOWN: look::Colour = GRID;
/// Maximum legend entries that fit beside a strip, below its name.
const ENTRIES_MAX: usize = 4;
const LIMIT: Pen = Pen::dashed(MARK, 1.2);
/// Tolerance for rounding, so that it does not count as exceeding the limit.
const SLACK: f64 = 1.01;

pub(super) fn draw<S: Surface>(page: &mut Page<S>, gantt: &Gantt, time_axis: &TimeAxis) -> Drawn {
    for strip in &gantt.strips {
        let top = page.take(HEIGHT + BETWEEN);
        draw_strip(page, gantt, strip, time_axis, top)?;
    }
    page.y -= BETWEEN / 2.0;
    Ok(())
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

/// A strip with its data prepared for drawing.
struct Layers<'a> {
    gantt: &'a Gantt,
    strip: &'a Strip,
    /// Cumulative sums over the series, from none to all, for every bin.
    tops: Vec<Vec<f64>>,
    /// Bins in which no series has a value.
    unknown: Vec<std::ops::Range<usize>>,
}

type StripChart<S> = ChartContext<'static, S, Cartesian2d<Ticked, Ticked>>;

fn draw_strip<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    strip: &Strip,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    let bins = gantt.edges_ns.len().saturating_sub(1);
    let layers = Layers { gantt, strip, tops: stacked(strip, bins), unknown: unknown(strip, bins) };
    let limit = strip.limit.as_ref().map(|mark| mark.at);
    let axis = Axis::linear(&*strip.title, strip.unit);
    let scale = Scale::of(&axis, layers.total().iter().copied().chain(limit), 2);
    let title = scale.title();
    let mut chart = chart(page, time_axis, scale, top)?;
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(Pen::of(GRID, 1.0).of_plotters())
        .max_light_lines(0)
        .axis_style(Pen::of(AXIS, 1.0).of_plotters())
        .label_style(TICK.middle().of_plotters())
        .set_all_tick_mark_size(units(GAP / 2.0))
        .draw()?;
    layers.draw(&mut chart)?;
    layers.draw_key(page, time_axis, &title, top)
}

/// The chart of a strip on the time axis of all.
fn chart<S: Surface>(
    page: &Page<S>,
    time_axis: &TimeAxis,
    scale: Scale,
    top: f64,
) -> Drawn<StripChart<S>> {
    // plotters ends an axis a unit before the edge.
    let size = (units(time_axis.right) - units(MARGIN) + 1, units(top + HEIGHT) - units(top) + 1);
    let area = page.area.clone().shrink((units(MARGIN), units(top)), size);
    ChartBuilder::on(&area)
        .y_label_area_size(units(time_axis.left) - units(MARGIN))
        .build_cartesian_2d(
            time_axis.scale.clone().ticked_at(time_axis.ticks.clone()),
            scale.ticked(),
        )
}

impl Layers<'_> {
    fn total(&self) -> &[f64] {
        self.tops.last().map_or(&[], Vec::as_slice)
    }

    fn colour(&self, series: usize) -> look::Colour {
        if self.strip.by_lane {
            colour(self.gantt, series)
        } else {
            look::series(series, self.strip.series.len())
        }
    }

    /// The edge of a bin within the displayed time.
    fn edge(&self, bin: usize) -> f64 {
        let edge_ns = self.gantt.edges_ns.get(bin).copied().unwrap_or(self.gantt.until_ns);
        // Not clamp(), which panics if the displayed time ends before it begins.
        edge_ns.max(self.gantt.from_ns).min(self.gantt.until_ns) as f64
    }

    /// True if any bin is above the limit.
    fn is_over(&self) -> bool {
        let limit = self.strip.limit.as_ref().map(|mark| mark.at);
        limit.is_some_and(|limit| self.total().iter().any(|total| *total > limit * SLACK))
    }

    fn draw<S: Surface>(&self, chart: &mut StripChart<S>) -> Drawn {
        let (times, values) = (chart.x_range(), chart.y_range());
        // Unknown bins must not be shown as zero.
        let unknown = self.unknown.iter().map(|bins| {
            let corners =
                [(self.edge(bins.start), values.start), (self.edge(bins.end), values.end)];
            Rectangle::new(corners, UNKNOWN.filled())
        });
        chart.draw_series(unknown)?;
        let area = chart.plotting_area();
        for at in 0..self.strip.series.len() {
            let steps = self.steps(chart, &self.tops[at], &self.tops[at + 1]);
            area.draw(&Areas::new(steps, self.colour(at), 0.9))?;
        }
        if let Some(limit) = self.strip.limit.as_ref().map(|mark| mark.at) {
            if self.is_over() {
                let over: Vec<f64> = self.total().iter().map(|total| total.max(limit)).collect();
                let steps = self.steps(chart, &vec![limit; over.len()], &over);
                area.draw(&Areas::new(steps.iter().cloned(), MORE, 0.8))?;
                // So that the shortest excess is seen.
                for step in steps {
                    area.draw(&PathElement::new(step, Pen::of(MORE, 0.8).of_plotters()))?;
                }
            }
            let line =
                PathElement::new([(times.start, limit), (times.end, limit)], LIMIT.of_plotters());
            area.draw(&drawn_as(Way::Dashed, line))?;
        }
        let foot = [(times.start, values.start), (times.end, values.start)];
        area.draw(&PathElement::new(foot, Pen::of(AXIS, 1.0).of_plotters()))
    }

    /// The area between two levels that are constant within each bin.
    fn steps<S: Surface>(
        &self,
        chart: &StripChart<S>,
        from: &[f64],
        to: &[f64],
    ) -> Vec<Vec<(f64, f64)>> {
        // Invisible stretches are left out.
        let y = |value: f64| chart.backend_coord(&(0.0, value)).1;
        let same = |bin: usize| y(from[bin]) == y(to[bin]);
        let mut areas = Vec::new();
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
            let level = |at: usize, levels: &[f64]| {
                [(self.edge(at), levels[at]), (self.edge(at + 1), levels[at])]
            };
            let upper = (begin..bin).flat_map(|at| level(at, to));
            let lower = (begin..bin).rev().flat_map(|at| level(at, from).into_iter().rev());
            areas.push(upper.chain(lower).collect());
        }
        areas
    }

    /// The name of the strip and its legend, to the right of it.
    fn draw_key<S: Surface>(
        &self,
        page: &Page<S>,
        time_axis: &TimeAxis,
        title: &str,
        top: f64,
    ) -> Drawn {
        let x = time_axis.right + 2.0 * GAP;
        let mut y = top + LINE / 2.0 - 3.0;
        let room = RIGHT_COLUMN - 2.0 * GAP;
        page.text(x, y, &HEADING.fit(title, room), HEADING)?;
        let mut entries = Vec::new();
        if self.strip.by_lane {
            y += LINE;
            page.text(x, y, "colours as below", TICK.colour(FAINT_INK))?;
        } else {
            let series = self.strip.series.iter().enumerate();
            entries.extend(series.map(|(at, s)| (Swatch::Area(self.colour(at)), &*s.name)));
        }
        if let Some(limit) = &self.strip.limit {
            entries.push((Swatch::Line(LIMIT), &limit.name));
        }
        if self.is_over() {
            entries.push((Swatch::Area(MORE), "above this limit"));
        }
        // There is no room for more beside a strip; only strips without a limit have unknown bins.
        if !self.unknown.is_empty() && entries.len() < ENTRIES_MAX {
            entries.push((Swatch::Area(UNKNOWN), "not known"));
        }
        for (swatch, name) in entries {
            y += LINE;
            page.swatch(x, y, swatch)?;
            page.text(x + 18.0, y, &TICK.fit_name(name, room - 18.0), TICK)?;
        }
        Ok(())
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
