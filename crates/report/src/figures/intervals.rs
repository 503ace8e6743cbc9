//! Estimates with their intervals: a panel per group, a row per estimate.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::element::{Circle, PathElement};
use plotters::style::Color as _;
use proctrace_findings::{Chart, Estimate, IntervalGroup, Intervals};

use super::backend::{Drawn, Size, Surface, Way, units};
use super::elements::{Block, Pen, drawn_as};
use super::look::{self, Colour, FAINT_INK, GAP, HEADING, LABEL, LINE, MARGIN, PAPER, TICK};
use super::page::Page;
use super::row_plot::{RowPlot, RowSizes};
use super::scale::Scale;

const PITCH: f64 = 17.0;
const NAME_MAX: f64 = 130.0;
const RADIUS: f64 = 4.0;
const RIM: f64 = 1.6;
/// Maximum number of panels in one column; more are put in two.
const ONE_COLUMN_MAX: usize = 3;
/// Space between two columns.
const GUTTER: f64 = 24.0;
/// Space kept free at both ends of a logarithmic axis, as a factor.
const ROOM: f64 = 1.07;
/// Maximum number of panels, and of estimates in one.
const GROUPS_MAX: usize = 60;
const ESTIMATES_MAX: usize = 40;

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    intervals: &Intervals,
) -> Drawn<Size> {
    let mut page = Page::of(canvas, chart)?;
    let mut notes = chart.notes.clone();
    let groups = &intervals.groups[..intervals.groups.len().min(GROUPS_MAX)];
    if groups.len() < intervals.groups.len() {
        notes.push(format!("The first {GROUPS_MAX} of {} panels.", intervals.groups.len()));
    }
    if groups.iter().any(|group| group.estimates.len() > ESTIMATES_MAX) {
        notes.push(format!("The first {ESTIMATES_MAX} estimates of a panel."));
    }
    let scale = scale(intervals, groups);
    let names = names(groups);
    let columns = if groups.len() > ONE_COLUMN_MAX { 2 } else { 1 };
    let width = (page.inner() - GUTTER * (columns - 1) as f64) / columns as f64;
    for line in groups.chunks(columns) {
        let height = line.iter().map(|group| shown(group).len()).max().unwrap_or(0) as f64 * PITCH;
        let top = page.take(LINE + 6.0 + height + LINE + 10.0);
        for (column, group) in line.iter().enumerate() {
            let left = MARGIN + column as f64 * (width + GUTTER);
            let panel = Panel { intervals, scale: &scale, names: &names };
            panel.draw(&page, group, (left, left + width), top, height)?;
        }
    }
    let title = LABEL.fit(&scale.title(), page.inner()).into_owned();
    if !title.is_empty() {
        let y = page.take(LINE + 4.0) + LINE / 2.0;
        page.text(page.width / 2.0, y, &title, LABEL.middle())?;
    }
    page.finish(&notes)
}

fn shown(group: &IntervalGroup) -> &[Estimate] {
    &group.estimates[..group.estimates.len().min(ESTIMATES_MAX)]
}

/// The axis of all panels.
fn scale(intervals: &Intervals, groups: &[IntervalGroup]) -> Scale {
    let values = || {
        let estimates = groups.iter().flat_map(shown);
        let ends = estimates.flat_map(|estimate| [estimate.low, estimate.value, estimate.high]);
        let noise = groups.iter().filter_map(|group| group.noise);
        ends.chain(noise.flat_map(|(low, high)| [low, high])).chain(intervals.reference)
    };
    let scale = Scale::of(&intervals.axis, values(), 6);
    if !intervals.axis.logarithmic {
        return scale;
    }
    // Whole decades would leave most of the panel empty where ratios are near 1.
    let on_it = values().filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = on_it.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    scale.between(low / ROOM, high.max(low * 2.0) * ROOM)
}

/// The names of all estimates, in order of first appearance: a name's colour is that of its index.
fn names(groups: &[IntervalGroup]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for estimate in groups.iter().flat_map(shown) {
        if !names.contains(&&*estimate.name) {
            names.push(&estimate.name);
        }
    }
    names
}

/// Properties that all panels share.
struct Panel<'a> {
    intervals: &'a Intervals,
    scale: &'a Scale,
    names: &'a [&'a str],
}

impl Panel<'_> {
    fn draw<S: Surface>(
        &self,
        page: &Page<S>,
        group: &IntervalGroup,
        (left, right): (f64, f64),
        top: f64,
        height: f64,
    ) -> Drawn {
        let estimates = shown(group);
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let count = estimates.len();
        let sizes = RowSizes {
            count,
            pitch: PITCH,
            // Panels in one line are equally high.
            below: height - count as f64 * PITCH,
            names: widest(&mut self.names.iter().map(|name| LABEL.width(name).min(NAME_MAX))),
            numbers: widest(&mut estimates.iter().map(|e| TICK.width(&self.scale.value(e.value)))),
        };
        let first = top + LINE + 6.0;
        let mut plot = RowPlot::within(page, (left, right), first, self.scale.clone(), sizes)?;
        let heading = HEADING.fit(&group.name, right - plot.left);
        page.text(plot.left, top + LINE / 2.0, &heading, HEADING)?;
        let rows = plot.chart.y_range();
        if let Some((low, high)) = group.noise.filter(|(a, b)| a.is_finite() && b.is_finite()) {
            let noise = Block {
                corners: [(low, rows.start), (high, rows.end)],
                colour: look::NOISE,
                inset: [0.0; 4],
                least: (0.8, 0.0),
            };
            plot.chart.plotting_area().draw(&noise)?;
        }
        plot.draw_grid()?;
        if let Some(reference) = self.intervals.reference.filter(|at| self.scale.covers(*at)) {
            let ends = [(reference, rows.start), (reference, rows.end)];
            let line = PathElement::new(ends, Pen::of(look::AXIS, 1.0).of_plotters());
            plot.chart.plotting_area().draw(&line)?;
        }
        for (row, estimate) in estimates.iter().enumerate() {
            let at = self.names.iter().position(|name| *name == estimate.name).unwrap_or(0);
            let colour = look::series(at, self.names.len());
            self.draw_estimate(page, &plot, estimate, row, colour)?;
        }
        Ok(())
    }

    fn draw_estimate<S: Surface>(
        &self,
        page: &Page<S>,
        plot: &RowPlot<S>,
        estimate: &Estimate,
        row: usize,
        colour: Colour,
    ) -> Drawn {
        let y = plot.middle(row);
        page.text(plot.left - GAP, y, &LABEL.fit_name(&estimate.name, NAME_MAX), LABEL.end())?;
        if !estimate.value.is_finite() {
            return Ok(());
        }
        let finite = |end: f64| if end.is_finite() { end } else { estimate.value };
        let (low, high) = (finite(estimate.low), finite(estimate.high));
        let middle = row as f64 + 0.5;
        let ends = [(low.min(estimate.value), middle), (high.max(estimate.value), middle)];
        let area = plot.chart.plotting_area();
        area.draw(&PathElement::new(ends, Pen::of(colour, 2.0).of_plotters()))?;
        let fill = if estimate.comparable { colour } else { PAPER };
        let value = self.scale.value(estimate.value);
        let tip = format!(
            "{}: {value} [{}, {}]",
            estimate.name,
            self.scale.value(low),
            self.scale.value(high)
        );
        let (place, radius) = ((estimate.value, middle), units(RADIUS));
        area.draw(&drawn_as(Way::Told(&tip), Circle::new(place, radius, fill.filled())))?;
        let rim = Pen::of(colour, RIM).of_plotters();
        area.draw(&drawn_as(Way::Told(&tip), Circle::new(place, radius, rim)))?;
        let end = plot.x_at(high).max(plot.x_at(estimate.value) + RADIUS) + GAP;
        page.text(end, y, &value, TICK.colour(FAINT_INK))
    }
}
