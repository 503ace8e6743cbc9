//! Labelled horizontal bars.

use proctrace_findings::{Bars, Chart};

use super::look::{self, FAINT_INK, GAP, LABEL, LINE, TICK};
use super::page::{Page, Swatch};
use super::row_plot::{Beside, NAME_MAX, RowPlot};
use super::scale::Scale;

/// Maximum number of rows; beyond this a table is the better form.
const ROWS_MAX: usize = 130;
/// The series for the part that a method did not observe.
const MISSING: &str = "missing";

pub(super) fn draw(chart: &Chart, bars: &Bars) -> String {
    let mut page = Page::of(chart);
    let mut notes = chart.notes.clone();
    let rows = bars.rows.len().min(ROWS_MAX);
    if bars.rows.len() > rows {
        notes.push(format!("The first {rows} of {} rows.", bars.rows.len()));
    }
    if bars.series.len() > 1 {
        let names = bars.series.iter().map(|series| series.name.clone());
        let entries: Vec<_> =
            names.enumerate().map(|(at, name)| (Swatch::Area(colour(bars, at)), name)).collect();
        page.legend(&entries);
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
    let plot = RowPlot::new(&mut page, rows as f64 * pitch + 4.0, scale, Beside { names, numbers });
    plot.draw_grid(&mut page);
    let place = Place { plot, thick };
    for (row, name) in bars.rows[..rows].iter().enumerate() {
        let middle = place.plot.top + (row as f64 + 0.5) * pitch;
        page.svg.text(place.plot.left - GAP, middle, &LABEL.fit_name(name, NAME_MAX), LABEL.end());
        if bars.stacked {
            place.draw_stack(&mut page, bars, row, middle);
        } else {
            place.draw_group(&mut page, bars, row, middle - lines as f64 * thick / 2.0);
        }
    }
    place.plot.draw_foot(&mut page, place.foot());
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
struct Place {
    plot: RowPlot,
    thick: f64,
}

impl Place {
    /// Where bars begin.
    fn foot(&self) -> f64 {
        self.plot.x_at(self.plot.scale.low().max(0.0))
    }

    /// A bar, and its end.
    fn draw_bar(&self, page: &mut Page, bars: &Bars, bar: &Bar) -> (f64, f64) {
        let (begin, end) = (bar.ends.0.min(bar.ends.1), bar.ends.0.max(bar.ends.1));
        // Non-zero values get a minimum visible width.
        let width = if bar.value == 0.0 { 0.0 } else { (end - begin).max(0.8) };
        let (row, series) = (&bars.rows[bar.row], &bars.series[bar.series].name);
        let tip = format!("{row}, {series}: {}", self.plot.scale.value(bar.value));
        let area = (begin, bar.y + 1.0, width, self.thick - 2.0);
        page.svg.told_rect(area, colour(bars, bar.series), &tip);
        (begin, end)
    }

    /// The values of a row below each other.
    fn draw_group(&self, page: &mut Page, bars: &Bars, row: usize, top: f64) {
        for (series, value) in values(bars, row) {
            let y = top + series as f64 * self.thick;
            let bar = Bar { row, series, value, ends: (self.foot(), self.plot.x_at(value)), y };
            let (_, end) = self.draw_bar(page, bars, &bar);
            let at = end.max(self.foot()) + GAP;
            let style = TICK.colour(FAINT_INK);
            page.svg.text(at, y + self.thick / 2.0, &self.plot.scale.value(value), style);
        }
    }

    /// The values of a row after each other; negative ones extend to the other side.
    fn draw_stack(&self, page: &mut Page, bars: &Bars, row: usize, middle: f64) {
        let (mut above, mut below) = (0.0, 0.0);
        for (series, value) in values(bars, row) {
            let base = if value < 0.0 { &mut below } else { &mut above };
            let begin = *base;
            *base += value;
            let ends = (self.plot.x_at(begin), self.plot.x_at(*base));
            let y = middle - self.thick / 2.0;
            let (begin, end) = self.draw_bar(page, bars, &Bar { row, series, value, ends, y });
            let text = self.plot.scale.value(value);
            if bars.series.len() > 1 && TICK.width(&text) + 2.0 * GAP < end - begin {
                let style = TICK.middle().colour(look::ink_on(colour(bars, series)));
                page.svg.text((begin + end) / 2.0, middle, &text, style);
            }
        }
        if let Some(observed) = observed(bars, row) {
            let end = self.plot.x_at(above.max(0.0));
            let style = TICK.colour(FAINT_INK);
            page.svg.text(end + GAP, middle, &self.plot.scale.value(observed), style);
        }
    }
}

/// A bar of a row.
struct Bar {
    row: usize,
    series: usize,
    value: f64,
    /// Where it begins and ends; the end is left of the beginning for a negative value.
    ends: (f64, f64),
    y: f64,
}
