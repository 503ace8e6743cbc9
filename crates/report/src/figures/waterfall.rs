//! Waterfall charts: the steps from one value to another.

use proctrace_findings::{Chart, Waterfall};

use super::look::{self, AXIS, FAINT_INK, GAP, HEADING, LABEL, LESS, MORE, TICK};
use super::page::{Page, Swatch};
use super::row_plot::{Beside, NAME_MAX, RowPlot};
use super::scale::Scale;
use super::svg::Pen;

const PITCH: f64 = 26.0;
const THICK: f64 = 17.0;

pub(super) fn draw(chart: &Chart, waterfall: &Waterfall) -> String {
    let mut page = Page::of(chart);
    page.legend(&[
        (Swatch::Area(look::series(0, 2)), "total".to_owned()),
        (Swatch::Area(MORE), "increase".to_owned()),
        (Swatch::Area(LESS), "decrease".to_owned()),
    ]);
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
    let beside = Beside { names: names * 1.12, numbers: values };
    let plot = RowPlot::new(&mut page, rows.len() as f64 * PITCH + 4.0, scale, beside);
    plot.draw_grid(&mut page);
    for (row, (name, (from, to), colour, text)) in rows.iter().enumerate() {
        let middle = plot.top + (row as f64 + 0.5) * PITCH;
        let total = row == 0 || row + 1 == rows.len();
        let font = if total { HEADING } else { LABEL };
        page.svg.text(plot.left - GAP, middle, &font.fit_name(name, NAME_MAX * 1.12), font.end());
        let (begin, end) = (plot.x_at(from.min(*to)), plot.x_at(from.max(*to)));
        let what = format!("{name}: {text}");
        let width = (end - begin).max(0.8);
        page.svg.told_rect((begin, middle - THICK / 2.0, width, THICK), colour, &what);
        page.svg.text(end + GAP, middle, text, TICK.colour(FAINT_INK));
        if row + 1 < rows.len() {
            let x = plot.x_at(*to);
            let (from, to) = (middle + THICK / 2.0, middle + PITCH - THICK / 2.0);
            page.svg.line((x, from), (x, to), Pen::of(AXIS, 1.0));
        }
    }
    plot.draw_foot(&mut page, plot.x_at(0.0));
    page.finish(&chart.notes)
}
