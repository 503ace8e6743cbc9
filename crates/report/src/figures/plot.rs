//! A rectangle with axes: the common part of line charts, histograms and scatter plots.

use proctrace_findings::Mark;

use super::look::{AXIS, GAP, GRID, LABEL, LINE, MARGIN, MARK, PAPER, TICK};
use super::page::Page;
use super::scale::{Scale, Tick};
use super::svg::Pen;

/// Position of a plot and the scales of its axes.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

/// What surrounds a plot.
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

impl Plot {
    /// A plot of this height across the page, with its axes drawn and space reserved below and
    /// beside it for tick labels and names.
    pub(crate) fn new(
        page: &mut Page,
        height: f64,
        x: Scale,
        y: Scale,
        around: &Surroundings<'_>,
    ) -> Self {
        let y_ticks = y.ticks();
        let widest = y_ticks.iter().map(|tick| TICK.width(&tick.label)).fold(0.0, f64::max);
        let left = MARGIN + LINE + widest + 2.0 * GAP;
        let shown = |mark: &&Mark| y.covers(mark.at);
        let names =
            around.marks.iter().filter(shown).map(|mark| LABEL.width(&mark.name).min(NAME_MAX));
        let names = names.fold(0.0, f64::max);
        // Half of the last tick label of the horizontal axis extends beyond the plot.
        let right = page.width - MARGIN - if names > 0.0 { names + GAP } else { 22.0 };

        let x_at = |value: f64| left + (right - left) * x.part(value);
        let moments: Vec<(f64, String)> = around
            .moments
            .iter()
            .filter(|moment| x.covers(moment.at))
            .map(|moment| (x_at(moment.at), LABEL.fit(&moment.name, MOMENT_MAX).into_owned()))
            .collect();
        // Labels of marks are at the right, from the top of the plot downwards.
        let end = if names > 0.0 { right } else { page.width - MARGIN };
        let rows = stagger(&moments, left, end);
        let above = rows.iter().map(|(row, _)| row + 1).max().unwrap_or(0) as f64 * LINE;
        let top = page.take(above) + above + 4.0;
        let bottom = top + height;
        let plot = Self { left, right, top, bottom, x, y };

        let x_ticks = around.x_ticks.clone().unwrap_or_else(|| plot.x.ticks());
        plot.draw_grid(page, &x_ticks, &y_ticks);
        let y_of = |row: usize| top - LINE * (row as f64 + 0.5) - 2.0;
        for ((x, _), (row, _)) in moments.iter().zip(&rows) {
            page.svg.line((*x, y_of(*row) + LINE / 2.0), (*x, top), MARK_PEN);
        }
        for ((_, name), (row, middle)) in moments.iter().zip(&rows) {
            // The leader lines of labels in higher rows pass behind.
            let width = LABEL.width(name) + 4.0;
            page.svg.rect(middle - width / 2.0, y_of(*row) - 7.0, width, 14.0, PAPER);
            page.svg.text(*middle, y_of(*row), name, LABEL.middle());
        }
        page.y = bottom + 6.0 + LINE;
        let title = plot.x.title();
        if !title.is_empty() {
            let y = page.take(LINE + 4.0) + LINE / 2.0 + 2.0;
            let title = LABEL.fit(&title, page.inner());
            let half = LABEL.width(&title) / 2.0;
            let middle = ((left + right) / 2.0).clamp(MARGIN + half, page.width - MARGIN - half);
            page.svg.text(middle, y, &title, LABEL.middle());
        }
        plot
    }

    fn draw_grid(&self, page: &mut Page, x_ticks: &[Tick], y_ticks: &[Tick]) {
        let svg = &mut page.svg;
        for minor in self.y.minor() {
            let y = self.y_at(minor);
            svg.line((self.left, y), (self.right, y), Pen::of(GRID, 0.4));
        }
        for tick in y_ticks {
            let y = self.y_at(tick.at);
            svg.line((self.left, y), (self.right, y), Pen::of(GRID, 1.0));
            svg.text(self.left - GAP, y, &tick.label, TICK.end());
        }
        let mut taken = f64::NEG_INFINITY;
        for tick in x_ticks {
            let x = self.x_at(tick.at);
            let half = TICK.width(&tick.label) / 2.0;
            svg.line((x, self.top), (x, self.bottom), Pen::of(GRID, 1.0));
            if x - half >= taken {
                svg.line((x, self.bottom), (x, self.bottom + 4.0), Pen::of(AXIS, 1.0));
                svg.text(x, self.bottom + 6.0 + LINE / 2.0, &tick.label, TICK.middle());
                taken = x + half + GAP;
            }
        }
        svg.line((self.left, self.bottom), (self.right, self.bottom), Pen::of(AXIS, 1.0));
        svg.line((self.left, self.top), (self.left, self.bottom), Pen::of(AXIS, 1.0));
        let title = self.y.title();
        let title = LABEL.fit(&title, self.bottom - self.top);
        let (x, y) = (MARGIN + LABEL.size, (self.top + self.bottom) / 2.0);
        svg.text(x, y, &title, LABEL.middle().turned(-90.0));
    }

    /// Draws labelled horizontal lines over the data.
    pub(crate) fn draw_marks(&self, page: &mut Page, marks: &[Mark]) {
        let mut marks: Vec<&Mark> = marks.iter().filter(|mark| self.y.covers(mark.at)).collect();
        marks.sort_by(|a, b| b.at.total_cmp(&a.at));
        let wanted: Vec<f64> = marks.iter().map(|mark| self.y_at(mark.at)).collect();
        let places = spread(&wanted, LINE - 2.0, self.top, self.bottom);
        for ((mark, y), place) in marks.iter().zip(&wanted).zip(places) {
            page.svg.line((self.left, *y), (self.right, *y), MARK_PEN);
            let name = LABEL.fit(&mark.name, NAME_MAX);
            page.svg.text(self.right + GAP, place, &name, LABEL);
        }
    }

    /// Draws vertical lines over the data; their labels are already drawn.
    pub(crate) fn draw_moments(&self, page: &mut Page, moments: &[Mark]) {
        for moment in moments.iter().filter(|moment| self.x.covers(moment.at)) {
            let x = self.x_at(moment.at);
            page.svg.line((x, self.top), (x, self.bottom), MARK_PEN);
        }
    }

    pub(crate) fn x_at(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.part(value)
    }

    pub(crate) fn y_at(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
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
