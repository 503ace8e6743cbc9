//! A plotters chart with two axes: the common part of line charts, histograms and scatter plots.

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::PathElement;
use proctrace_findings::Mark;

use super::backend::{Drawn, Surface, Way, units};
use super::coordinates::Ticked;
use super::elements::{Pen, drawn_as};
use super::look::{AXIS, GAP, GRID, LABEL, LINE, MARGIN, MARK, PAPER, TICK};
use super::page::Page;
use super::scale::{Scale, Tick};

/// The chart, its position in pixels and the scales of its axes.
pub(crate) struct Plot<S: Surface> {
    pub(crate) chart: ChartContext<'static, S, Cartesian2d<Ticked, Ticked>>,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    x: Scale,
    y: Scale,
}

/// Texts that surround a plot.
#[derive(Debug, Default)]
pub(crate) struct Surroundings<'a> {
    /// Horizontal lines, labelled at the right.
    pub(crate) marks: &'a [Mark],
    /// Vertical lines, labelled above.
    pub(crate) moments: &'a [Mark],
    /// Ticks of the horizontal axis, if different from those of its scale.
    pub(crate) x_ticks: Option<Vec<Tick>>,
}

/// Maximum width of line labels, at the right and above.
const NAME_MAX: f64 = 240.0;
const MOMENT_MAX: f64 = 340.0;
const MARK_PEN: Pen = Pen::dashed(MARK, 1.2);
/// Height of the space for the tick labels of the horizontal axis, and for its title.
const TICKS_HEIGHT: f64 = 22.0;
const TITLE_HEIGHT: f64 = 20.0;
/// Lengths of ticks. plotters leaves the same again between a tick and its label.
const X_TICK: f64 = 4.0;
const Y_TICK: f64 = GAP / 2.0;

impl<S: Surface> Plot<S> {
    /// A plot of this height across the page, with its axes drawn and space reserved below and
    /// beside it for tick labels and names.
    pub(crate) fn new(
        page: &mut Page<S>,
        height: f64,
        x: Scale,
        y: Scale,
        around: &Surroundings<'_>,
    ) -> Drawn<Self> {
        let widest = y.ticks().iter().map(|tick| TICK.width(&tick.label)).fold(0.0, f64::max);
        let left = MARGIN + LINE + widest + 2.0 * GAP;
        let shown = |mark: &&Mark| y.covers(mark.at);
        let names =
            around.marks.iter().filter(shown).map(|mark| LABEL.width(&mark.name).min(NAME_MAX));
        let names = names.fold(0.0, f64::max);
        // Half of the last tick label of the horizontal axis extends beyond the plot.
        let right = page.width - MARGIN - if names > 0.0 { names + GAP } else { 22.0 };
        // Labels of marks are at the right, from the top of the plot downwards.
        let end = if names > 0.0 { right } else { page.width - MARGIN };
        let moments = Moments::of(around.moments, &x, (left, right), end);
        let top = page.take(moments.height()) + moments.height() + 4.0;
        let bottom = top + height;
        let x_ticks = around.x_ticks.clone().unwrap_or_else(|| x.ticks());
        let chart = draw_axes(page, (left, right), (top, bottom), (&x, x_ticks), &y)?;
        moments.draw(page, top)?;
        page.y = bottom + TICKS_HEIGHT + if x.title().is_empty() { 0.0 } else { TITLE_HEIGHT };
        Ok(Self { chart, left, right, top, bottom, x, y })
    }

    /// Draws labelled horizontal lines over the data.
    pub(crate) fn draw_marks(&self, page: &Page<S>, marks: &[Mark]) -> Drawn {
        let mut marks: Vec<&Mark> = marks.iter().filter(|mark| self.y.covers(mark.at)).collect();
        marks.sort_by(|a, b| b.at.total_cmp(&a.at));
        let wanted: Vec<f64> = marks.iter().map(|mark| self.y_at(mark.at)).collect();
        let places = spread(&wanted, LINE - 2.0, self.top, self.bottom);
        let ends = self.chart.x_range();
        for (mark, place) in marks.iter().zip(places) {
            self.draw_mark([(ends.start, mark.at), (ends.end, mark.at)])?;
            let name = LABEL.fit(&mark.name, NAME_MAX);
            page.text(self.right + GAP, place, &name, LABEL)?;
        }
        Ok(())
    }

    /// Draws vertical lines over the data; their labels are already drawn.
    pub(crate) fn draw_moments(&self, moments: &[Mark]) -> Drawn {
        let ends = self.chart.y_range();
        for moment in moments.iter().filter(|moment| self.x.covers(moment.at)) {
            self.draw_mark([(moment.at, ends.start), (moment.at, ends.end)])?;
        }
        Ok(())
    }

    fn draw_mark(&self, ends: [(f64, f64); 2]) -> Drawn {
        let line = PathElement::new(ends, MARK_PEN.of_plotters());
        self.chart.plotting_area().draw(&drawn_as(Way::Dashed, line))
    }

    pub(crate) fn x_at(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.part(value)
    }

    pub(crate) fn y_at(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
    }
}

/// The chart between these edges, with its grid, ticks and titles of axes.
fn draw_axes<S: Surface>(
    page: &Page<S>,
    (left, right): (f64, f64),
    (top, bottom): (f64, f64),
    (x, x_ticks): (&Scale, Vec<Tick>),
    y: &Scale,
) -> Drawn<ChartContext<'static, S, Cartesian2d<Ticked, Ticked>>> {
    let x_title = title_below(page, x, (left + right) / 2.0);
    let below = TICKS_HEIGHT + if x_title.is_empty() { 0.0 } else { TITLE_HEIGHT - 2.0 };
    // plotters ends an axis a unit before the edge.
    let size = (units(right) - units(MARGIN) + 1, units(bottom + below) - units(top) + 1);
    let area = page.area.clone().shrink((units(MARGIN), units(top)), size);
    let mut chart = ChartBuilder::on(&area)
        .x_label_area_size(units(bottom + below) - units(bottom))
        .y_label_area_size(units(left) - units(MARGIN))
        .build_cartesian_2d(
            x.clone().ticked_at(x_ticks).thinned(right - left),
            y.clone().ticked(),
        )?;
    let title = LABEL.middle().of_plotters();
    let y_title = LABEL.fit(&y.title(), bottom - top).into_owned();
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(Pen::of(GRID, 0.4).of_plotters())
        .bold_line_style(Pen::of(GRID, 1.0).of_plotters())
        .axis_style(Pen::of(AXIS, 1.0).of_plotters())
        .x_max_light_lines(0)
        .label_style(TICK.middle().of_plotters())
        .axis_desc_style(title)
        .set_tick_mark_size(LabelAreaPosition::Bottom, units(X_TICK))
        .set_tick_mark_size(LabelAreaPosition::Left, units(Y_TICK));
    if !x_title.is_empty() {
        mesh.x_desc(x_title);
    }
    if !y_title.is_empty() {
        mesh.y_desc(y_title);
    }
    mesh.draw()?;
    Ok(chart)
}

/// The title of a horizontal axis, as much of it as fits on the page if it is centred there.
pub(crate) fn title_below<S: Surface>(page: &Page<S>, scale: &Scale, middle: f64) -> String {
    let room = 2.0 * (middle - MARGIN).min(page.width - MARGIN - middle);
    LABEL.fit(&scale.title(), room).into_owned()
}

/// Names of vertical lines, above the plot.
struct Moments {
    /// The horizontal position of each line, and its name.
    names: Vec<(f64, String)>,
    /// The row of each name, counted upwards, and its centre.
    rows: Vec<(usize, f64)>,
}

impl Moments {
    fn of(marks: &[Mark], x: &Scale, (left, right): (f64, f64), end: f64) -> Self {
        let names: Vec<(f64, String)> = marks
            .iter()
            .filter(|moment| x.covers(moment.at))
            .map(|moment| {
                let name = LABEL.fit(&moment.name, MOMENT_MAX).into_owned();
                (left + (right - left) * x.part(moment.at), name)
            })
            .collect();
        let rows = stagger(&names, left, end);
        Self { names, rows }
    }

    fn height(&self) -> f64 {
        self.rows.iter().map(|(row, _)| row + 1).max().unwrap_or(0) as f64 * LINE
    }

    fn draw<S: Surface>(&self, page: &Page<S>, top: f64) -> Drawn {
        let y_of = |row: usize| top - LINE * (row as f64 + 0.5) - 2.0;
        for ((x, _), (row, _)) in self.names.iter().zip(&self.rows) {
            page.line((*x, y_of(*row) + LINE / 2.0), (*x, top), MARK_PEN)?;
        }
        for ((_, name), (row, middle)) in self.names.iter().zip(&self.rows) {
            // The leader lines of labels in higher rows pass behind.
            let width = LABEL.width(name) + 4.0;
            page.rect(middle - width / 2.0, y_of(*row) - 7.0, width, 14.0, PAPER)?;
            page.text(*middle, y_of(*row), name, LABEL.middle())?;
        }
        Ok(())
    }
}

/// A row and a centre for each name above a plot, so that none overlap: the lowest row with enough
/// space.
fn stagger(names: &[(f64, String)], left: f64, right: f64) -> Vec<(usize, f64)> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| names[*a].0.total_cmp(&names[*b].0));
    let mut ends: Vec<f64> = Vec::new();
    let mut rows = vec![(0, 0.0); names.len()];
    for at in order {
        let half = LABEL.width(&names[at].1) / 2.0;
        let middle = names[at].0.min(right - half).max(left + half);
        let row = ends.iter().position(|end| *end <= middle - half).unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = middle + half + 2.0 * GAP;
        rows[at] = (row, middle);
    }
    rows
}

/// Positions near the wanted ones, which are monotonic, at least `apart` from each other and
/// between two bounds, as far as space allows.
pub(crate) fn spread(wanted: &[f64], apart: f64, low: f64, high: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for want in wanted {
        let least = places.last().map_or(low, |last| last + apart);
        places.push(want.max(least));
    }
    // Positions pushed beyond the end bound are moved back.
    let mut most = high;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - apart;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spread() {
        assert_eq!(spread(&[1.0, 2.0, 30.0], 10.0, 0.0, 100.0), [1.0, 11.0, 30.0]);
        assert_eq!(spread(&[90.0, 95.0, 99.0], 10.0, 0.0, 100.0), [80.0, 90.0, 100.0]);
    }

    #[test]
    fn names_above_do_not_overlap() {
        let names: Vec<(f64, String)> = [(50.0, "initialise"), (55.0, "loop"), (300.0, "end")]
            .map(|(x, n)| (x, n.to_owned()))
            .into();
        let rows = stagger(&names, 0.0, 400.0);
        assert_eq!([rows[0].0, rows[1].0, rows[2].0], [0, 1, 0]);
    }
}
