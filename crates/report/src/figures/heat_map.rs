//! A matrix of coefficients, each shown as a colour and a number.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::chart::ChartBuilder;
use plotters::style::RGBColor;
use proctrace_findings::{Chart, HeatMap};

use super::backend::{Drawn, Size, Surface, Way, units};
use super::coordinates::Rows;
use super::elements::{Block, drawn_as};
use super::look::{self, Colour, DIVERGING, FAINT_INK, GAP, INK, LABEL, MARGIN, PAPER, REST, TICK};
use super::page::{Page, at};

const CELL_MAX: f64 = 62.0;
const CELL_MIN: f64 = 32.0;
const NAME_MAX: f64 = 190.0;
const SCALE_WIDTH: f64 = 70.0;
const TURNED: f64 = -45.0;

/// Colour of cells without a value.
const EMPTY: Colour = look::rgb(0xf0f0f0);
/// Space between two cells.
const BETWEEN: f64 = 1.0;
/// Coefficient beyond which the colour is dark.
const DARK: f64 = 0.62;

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    map: &HeatMap,
) -> Drawn<Size> {
    let n = map.names.len();
    let widest = map.names.iter().map(|name| LABEL.width(name).min(NAME_MAX)).fold(0.0, f64::max);
    let left = MARGIN + widest + GAP;
    // The last rotated name extends to the right.
    let turned = widest * 0.71 + LABEL.size;
    let beside = turned.max(SCALE_WIDTH);
    let room = look::WIDTH - MARGIN - left - beside;
    let cell = (room / n.max(1) as f64).clamp(CELL_MIN, CELL_MAX);
    let right = left + n as f64 * cell;
    let width = look::WIDTH.max(right + beside + MARGIN);
    let mut page = Page::new(canvas, width, &chart.title)?;

    let top = page.take(turned + n as f64 * cell) + turned;
    for (row, name) in map.names.iter().enumerate() {
        let name = LABEL.fit(name, NAME_MAX);
        let middle = (row as f64 + 0.5) * cell;
        page.text(left - GAP, top + middle, &name, LABEL.end())?;
        page.turned((left + middle + 4.0, top - GAP), &name, LABEL, TURNED)?;
    }
    draw_cells(&page, map, (left, top), cell)?;
    draw_scale(&page, (right + 2.0 * GAP, top), (n as f64 * cell).min(240.0))?;
    page.finish(&chart.notes)
}

fn draw_cells<S: Surface>(
    page: &Page<S>,
    map: &HeatMap,
    (left, top): (f64, f64),
    cell: f64,
) -> Drawn {
    let n = map.names.len();
    // plotters ends an axis a unit before the edge.
    let across = units(n as f64 * cell) + 1;
    let area = page.area.clone().shrink(at(left, top), (across, across));
    let count = n.max(1) as f64;
    let chart = ChartBuilder::on(&area)
        .build_cartesian_2d(Rows { count, downwards: false }, Rows { count, downwards: true })?;
    for row in 0..n {
        for column in 0..n {
            let value =
                map.values.get(row).and_then(|values| values.get(column)).copied().flatten();
            let value = value.filter(|value| value.is_finite());
            let (fill, ink, text) = match value {
                Some(r) => (colour(r), if r.abs() > DARK { PAPER } else { INK }, number(r)),
                None => (EMPTY, REST, "–".to_owned()),
            };
            let (x, y) = (column as f64, row as f64);
            let block = Block {
                corners: [(x, y), (x + 1.0, y + 1.0)],
                colour: fill,
                inset: [0.0, 0.0, BETWEEN, BETWEEN],
                least: (0.0, 0.0),
            };
            let what = format!("{} and {}", map.names[row], map.names[column]);
            chart.plotting_area().draw(&drawn_as(Way::Told(&what), block))?;
            let middle = |at: f64| (at + 0.5) * cell - BETWEEN / 2.0;
            let style = TICK.middle().colour(ink);
            page.text(left + middle(x), top + middle(y), &text, style)?;
        }
    }
    Ok(())
}

/// The colours and what they mean.
fn draw_scale<S: Surface>(page: &Page<S>, (x, top): (f64, f64), height: f64) -> Drawn {
    if height <= 0.0 {
        return Ok(());
    }
    let steps = 40;
    for step in 0..steps {
        let r = 1.0 - 2.0 * (f64::from(step) + 0.5) / f64::from(steps);
        let slice = height / f64::from(steps);
        page.rect(x, top + f64::from(step) * slice, 14.0, slice + 0.5, colour(r))?;
    }
    for (part, label) in [(0.0, "1"), (0.5, "0"), (1.0, "−1")] {
        let y = top + (height * part).clamp(TICK.size / 2.0, height - TICK.size / 2.0);
        page.text(x + 14.0 + GAP, y, label, TICK.colour(FAINT_INK))?;
    }
    Ok(())
}

/// Interpolates between the colours of the scheme.
fn colour(r: f64) -> Colour {
    let place = (r.clamp(-1.0, 1.0) + 1.0) / 2.0 * (DIVERGING.len() - 1) as f64;
    let at = (place.floor() as usize).min(DIVERGING.len() - 2);
    let part = place - at as f64;
    let (from, to) = (DIVERGING[at], DIVERGING[at + 1]);
    let mix = |from: u8, to: u8| {
        (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round() as u8
    };
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn number(r: f64) -> String {
    // A coefficient beyond 1 is an error, and is shown unchanged.
    let text = if r.abs() < 10.0 { format!("{r:.2}") } else { format!("{r:.0e}") };
    match text.strip_prefix('-') {
        Some("0.00") => "0.00".to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_correlation_is_nearly_white() {
        assert_eq!(colour(0.0), look::rgb(0xf7f7f7));
        assert_eq!(colour(1.0), look::rgb(0xb2182b));
        assert_eq!(colour(-7.0), look::rgb(0x2166ac));
        assert_eq!(number(-0.001), "0.00");
        assert_eq!(number(-0.126), "−0.13");
    }
}
