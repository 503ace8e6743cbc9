//! Labelled horizontal bars.

use std::cell::RefCell;
use std::rc::Rc;

use proctrace_findings::{Bars, Chart};

use super::backend::{Drawn, Size, Surface, Way};
use super::elements::{Block, drawn_as};
use super::look::{self, FAINT_INK, GAP, LABEL, LINE, TICK};
use super::page::{Page, Swatch};
use super::row_plot::{NAME_MAX, RowPlot, RowSizes};
use super::scale::Scale;

/// Maximum number of rows; beyond this a table is the better form.
const ROWS_MAX: usize = 130;
/// The series for the part that a method did not observe.
const MISSING: &str = "missing";

pub(super) fn draw<S: Surface>(canvas: &Rc<RefCell<S>>, chart: &Chart, bars: &Bars) -> Drawn<Size> {
    let mut page = Page::of(canvas, chart)?;
    let mut notes = chart.notes.clone();
    let rows = bars.rows.len().min(ROWS_MAX);
    if bars.rows.len() > rows {
        notes.push(format!("The first {rows} of {} rows.", bars.rows.len()));
    }
    if bars.series.len() > 1 {
        let names = bars.series.iter().map(|series| series.name.clone());
        let entries: Vec<_> =
            names.enumerate().map(|(at, name)| (Swatch::Area(colour(bars, at)), name)).collect();
        page.legend(&entries)?;
    }
    // Stacked lengths cannot be added on a log axis.
    let mut axis = bars.axis.clone();
    axis.logarithmic &= !bars.stacked;
    let ends: Vec<f64> = if bars.stacked {
        (0..rows).filter_map(|row| total(bars, row)).collect()
    } else {
        (0..rows).flat_map(|row| values(bars, row).map(|(_, value)| value)).collect()
    };
    let scale = Scale::of(&axis, ends.iter().copied(), 6).with_foot();

    let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
    let names = widest(&mut bars.rows[..rows].iter().map(|name| LABEL.width(name).min(NAME_MAX)));
    let numbers = widest(&mut ends.iter().map(|end| TICK.width(&scale.value(*end))));
    let lines = if bars.stacked { 1 } else { bars.series.len().max(1) };
    let thick = if lines == 1 { 16.0 } else { 12.0 };
    let pitch = (lines as f64 * thick + 8.0).max(LINE + 4.0);
    let sizes = RowSizes { count: rows, pitch, below: 4.0, names, numbers };
    let mut plot = RowPlot::new(&mut page, scale, sizes)?;
    plot.draw_titled_grid(&page)?;
    let place = BarPlot { plot, thick };
    for (row, name) in bars.rows[..rows].iter().enumerate() {
        let name = LABEL.fit_name(name, NAME_MAX);
        page.text(place.plot.left - GAP, place.plot.middle(row), &name, LABEL.end())?;
        if bars.stacked {
            place.draw_stack(&page, bars, row)?;
        } else {
            place.draw_group(&page, bars, row)?;
        }
    }
    place.plot.draw_foot(place.foot())?;
    page.finish(&notes)
}

/// The finite values of a row, each with the index of its series.
fn values(bars: &Bars, row: usize) -> impl Iterator<Item = (usize, f64)> {
    bars.series.iter().enumerate().filter_map(move |(at, series)| {
        let value = series.values.get(row).copied().flatten()?;
        value.is_finite().then_some((at, value))
    })
}

/// The sum of a row; `None` if it has no value.
fn total(bars: &Bars, row: usize) -> Option<f64> {
    values(bars, row).map(|(_, value)| value).reduce(|sum, value| sum + value)
}

/// The sum without the part that a method did not observe: that part is drawn, but excluded from
/// the printed total.
fn observed(bars: &Bars, row: usize) -> Option<f64> {
    let seen = values(bars, row).filter(|(at, _)| bars.series[*at].name != MISSING);
    total(bars, row).map(|_| seen.map(|(_, value)| value).sum())
}

fn colour(bars: &Bars, series: usize) -> look::Colour {
    look::series_named(&bars.series[series].name, series, bars.series.len())
}

/// The plot, and the height of a bar with its gap.
struct BarPlot<S: Surface> {
    plot: RowPlot<S>,
    thick: f64,
}

/// A bar of a row.
struct Bar {
    row: usize,
    series: usize,
    value: f64,
    /// Begin and end on the axis; the end is less than the beginning for a negative value.
    ends: (f64, f64),
    /// Its line within the row, of how many.
    line: (usize, usize),
}

impl<S: Surface> BarPlot<S> {
    /// The value where bars begin.
    fn foot(&self) -> f64 {
        self.plot.scale.low().max(0.0)
    }

    /// The upper edge of a bar relative to the centre of its row, in pixels.
    fn offset(&self, (line, of): (usize, usize)) -> f64 {
        (line as f64 - of as f64 / 2.0) * self.thick
    }

    fn draw_bar(&self, bars: &Bars, bar: &Bar) -> Drawn {
        let (row, series) = (&bars.rows[bar.row], &bars.series[bar.series].name);
        let tip = format!("{row}, {series}: {}", self.plot.scale.value(bar.value));
        let row = |px: f64| bar.row as f64 + 0.5 + self.plot.rows(px);
        let top = self.offset(bar.line);
        let block = Block {
            corners: [(bar.ends.0, row(top)), (bar.ends.1, row(top + self.thick))],
            colour: colour(bars, bar.series),
            inset: [0.0, 1.0, 0.0, 1.0],
            // Non-zero values get a minimum visible width.
            least: (if bar.value == 0.0 { 0.0 } else { 0.8 }, 0.0),
        };
        self.plot.chart.plotting_area().draw(&drawn_as(Way::Told(&tip), block))
    }

    /// The values of a row below each other.
    fn draw_group(&self, page: &Page<S>, bars: &Bars, row: usize) -> Drawn {
        let lines = bars.series.len().max(1);
        for (series, value) in values(bars, row) {
            let line = (series, lines);
            self.draw_bar(bars, &Bar { row, series, value, ends: (self.foot(), value), line })?;
            let x = self.plot.x_at(value).max(self.plot.x_at(self.foot())) + GAP;
            let y = self.plot.middle(row) + self.offset(line) + self.thick / 2.0;
            page.text(x, y, &self.plot.scale.value(value), TICK.colour(FAINT_INK))?;
        }
        Ok(())
    }

    /// The values of a row after each other; negative ones extend to the other side.
    fn draw_stack(&self, page: &Page<S>, bars: &Bars, row: usize) -> Drawn {
        let middle = self.plot.middle(row);
        let (mut above, mut below) = (0.0, 0.0);
        for (series, value) in values(bars, row) {
            let base = if value < 0.0 { &mut below } else { &mut above };
            let ends = (*base, *base + value);
            *base += value;
            self.draw_bar(bars, &Bar { row, series, value, ends, line: (0, 1) })?;
            let (begin, end) = (self.plot.x_at(ends.0), self.plot.x_at(ends.1));
            let text = self.plot.scale.value(value);
            if bars.series.len() > 1 && TICK.width(&text) + 2.0 * GAP < (end - begin).abs() {
                let style = TICK.middle().colour(look::ink_on(colour(bars, series)));
                page.text((begin + end) / 2.0, middle, &text, style)?;
            }
        }
        if let Some(observed) = observed(bars, row) {
            let end = self.plot.x_at(above.max(0.0));
            let style = TICK.colour(FAINT_INK);
            page.text(end + GAP, middle, &self.plot.scale.value(observed), style)?;
        }
        Ok(())
    }
}
