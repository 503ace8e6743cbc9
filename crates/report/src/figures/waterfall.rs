//! Waterfall charts: the steps from one value to another.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::element::PathElement;
use proctrace_findings::{Chart, Waterfall};

use super::backend::{Drawn, Size, Surface, Way};
use super::elements::{Block, Pen, drawn_as};
use super::look::{self, AXIS, FAINT_INK, GAP, HEADING, LABEL, LESS, MORE, TICK};
use super::page::{Page, Swatch};
use super::row_plot::{NAME_MAX, RowPlot, RowSizes};
use super::scale::Scale;

const PITCH: f64 = 26.0;
const THICK: f64 = 17.0;

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    waterfall: &Waterfall,
) -> Drawn<Size> {
    let mut page = Page::of(canvas, chart)?;
    page.legend(&[
        (Swatch::Area(look::series(0, 2)), "total".to_owned()),
        (Swatch::Area(MORE), "increase".to_owned()),
        (Swatch::Area(LESS), "decrease".to_owned()),
    ])?;
    // Name, begin, end, colour, text.
    let mut axis = waterfall.axis.clone();
    axis.logarithmic = false;
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let mut reached = finite(waterfall.start.at);
    let mut ends = vec![0.0, reached, finite(waterfall.end.at)];
    for step in &waterfall.steps {
        reached += finite(step.change);
        ends.push(reached);
    }
    let scale = Scale::of(&axis, ends, 6);
    let whole = look::series(0, 2);
    let mut rows = vec![(
        &*waterfall.start.name,
        (0.0, finite(waterfall.start.at)),
        whole,
        scale.value(waterfall.start.at),
    )];
    let mut at = finite(waterfall.start.at);
    for step in &waterfall.steps {
        let change = finite(step.change);
        let text = scale.value(change);
        let text = if change > 0.0 { format!("+{text}") } else { text };
        rows.push((&step.name, (at, at + change), if change > 0.0 { MORE } else { LESS }, text));
        at += change;
    }
    let end = finite(waterfall.end.at);
    rows.push((&waterfall.end.name, (0.0, end), whole, scale.value(end)));

    let names = rows.iter().map(|row| LABEL.width(row.0).min(NAME_MAX)).fold(0.0, f64::max);
    let values = rows.iter().map(|row| TICK.width(&row.3)).fold(0.0, f64::max);
    let sizes = RowSizes {
        count: rows.len(),
        pitch: PITCH,
        below: 4.0,
        names: names * 1.12,
        numbers: values,
    };
    let mut plot = RowPlot::new(&mut page, scale, sizes)?;
    plot.draw_titled_grid(&page)?;
    let half = plot.rows(THICK / 2.0);
    for (row, (name, (from, to), colour, text)) in rows.iter().enumerate() {
        let total = row == 0 || row + 1 == rows.len();
        let font = if total { HEADING } else { LABEL };
        let shown = font.fit_name(name, NAME_MAX * 1.12);
        page.text(plot.left - GAP, plot.middle(row), &shown, font.end())?;
        let middle = row as f64 + 0.5;
        let block = Block {
            corners: [(*from, middle - half), (*to, middle + half)],
            colour: *colour,
            inset: [0.0; 4],
            least: (0.8, 0.0),
        };
        let area = plot.chart.plotting_area();
        area.draw(&drawn_as(Way::Told(&format!("{name}: {text}")), block))?;
        let end = plot.x_at(from.max(*to));
        page.text(end + GAP, plot.middle(row), text, TICK.colour(FAINT_INK))?;
        if row + 1 < rows.len() {
            let ends = [(*to, middle + half), (*to, middle + 1.0 - half)];
            area.draw(&PathElement::new(ends, Pen::of(AXIS, 1.0).of_plotters()))?;
        }
    }
    plot.draw_foot(0.0)?;
    page.finish(&chart.notes)
}
