//! Labelled horizontal bars.

use proctrace_findings::{Bars, Chart};

use super::look::{self, AXIS, FAINT_INK, GAP, GRID, LABEL, LINE, MARGIN, TICK};
use super::page::{Page, Swatch};
use super::scale::Scale;
use super::svg::Pen;

/// Maximum number of rows; beyond this a table is the better form.
const ROWS_MAX: usize = 130;
const NAME_MAX: f64 = 280.0;
/// The series for the part that a method did not observe.
const MISSING: &str = "missing";

pub(super) fn draw(chart: &Chart, bars: &Bars) -> String {
    let mut page = Page::of(chart);
    let mut notes = chart.notes.clone();
    let rows = bars.rows.len().min(ROWS_MAX);
    if bars.rows.len() > rows {
        notes.push(format!("The first {rows} of {} rows.", bars.rows.len()));
    }
    let value = |series: usize, row: usize| {
        bars.series[series].values.get(row).copied().flatten().filter(|value| value.is_finite())
    };
    let many = bars.series.len();
    if many > 1 {
        let entries = bars.series.iter().enumerate();
        let entries: Vec<_> = entries
            .map(|(at, series)| {
                (
                    Swatch::Area(look::series_named(&bars.series[at].name, at, bars.series.len())),
                    series.name.clone(),
                )
            })
            .collect();
        page.legend(&entries);
    }
    // Stacked lengths cannot be added on a log axis.
    let mut axis = bars.axis.clone();
    axis.logarithmic &= !bars.stacked;
    let total = |row: usize| {
        let values: Vec<f64> = (0..bars.series.len()).filter_map(|at| value(at, row)).collect();
        if values.is_empty() { None } else { Some(values.iter().sum::<f64>()) }
    };
    // What a method does not observe is drawn, but excluded from the printed total.
    let there = |row: usize| {
        let seen = (0..bars.series.len()).filter(|at| bars.series[*at].name != MISSING);
        total(row).map(|_| seen.filter_map(|at| value(at, row)).sum::<f64>())
    };
    let ends: Vec<f64> = if bars.stacked {
        (0..rows).filter_map(total).collect()
    } else {
        (0..rows)
            .flat_map(|row| (0..bars.series.len()).filter_map(move |at| value(at, row)))
            .collect()
    };
    let scale = Scale::of(&axis, ends.iter().copied(), 6).with_foot();

    let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
    let names = widest(&mut bars.rows[..rows].iter().map(|name| LABEL.width(name).min(NAME_MAX)));
    let values = widest(&mut ends.iter().map(|end| TICK.width(&scale.value(*end))));
    let left = MARGIN + names + 2.0 * GAP;
    let right = page.width - MARGIN - values - 2.0 * GAP;
    let x_at = |value: f64| left + (right - left) * scale.part(value);

    let lines = if bars.stacked { 1 } else { bars.series.len().max(1) };
    let thick = if lines == 1 { 16.0 } else { 12.0 };
    let pitch = (lines as f64 * thick + 8.0).max(LINE + 4.0);
    let top = page.take(rows as f64 * pitch + 4.0);
    let bottom = page.y;
    for minor in scale.minor() {
        page.svg.line((x_at(minor), top), (x_at(minor), bottom), Pen::of(GRID, 0.4));
    }
    let mut taken = f64::NEG_INFINITY;
    for tick in scale.ticks() {
        let (x, half) = (x_at(tick.at), TICK.width(&tick.label) / 2.0);
        page.svg.line((x, top), (x, bottom), Pen::of(GRID, 1.0));
        if x - half >= taken {
            page.svg.text(x, bottom + LINE / 2.0 + 2.0, &tick.label, TICK.middle());
            taken = x + half + GAP;
        }
    }
    let foot = x_at(scale.low().max(0.0));
    for (row, name) in bars.rows[..rows].iter().enumerate() {
        let middle = top + (row as f64 + 0.5) * pitch;
        page.svg.text(left - GAP, middle, &LABEL.fit(name, NAME_MAX), LABEL.end());
        let mut y = middle - lines as f64 * thick / 2.0;
        let (mut from, mut below) = (0.0, 0.0);
        for at in 0..bars.series.len() {
            let Some(value) = value(at, row) else {
                y += if bars.stacked { 0.0 } else { thick };
                continue;
            };
            let (begin, end) = if !bars.stacked {
                (foot, x_at(value))
            } else {
                // Negative parts extend to the other side.
                let base = if value < 0.0 { &mut below } else { &mut from };
                let begin = *base;
                *base += value;
                (x_at(begin), x_at(*base))
            };
            let (begin, end) = (begin.min(end), begin.max(end));
            let what = format!("{name}, {}: {}", bars.series[at].name, scale.value(value));
            let colour = look::series_named(&bars.series[at].name, at, bars.series.len());
            // Non-zero values get a minimum visible width.
            let width = if value == 0.0 { 0.0 } else { (end - begin).max(0.8) };
            page.svg.told_rect((begin, y + 1.0, width, thick - 2.0), colour, &what);
            if bars.stacked && many > 1 {
                let text = scale.value(value);
                if TICK.width(&text) + 2.0 * GAP < width {
                    let style = TICK.middle().colour(look::ink_on(colour));
                    page.svg.text((begin + end) / 2.0, middle, &text, style);
                }
            }
            if !bars.stacked {
                let text = scale.value(value);
                page.svg.text(end.max(foot) + GAP, y + thick / 2.0, &text, TICK.colour(FAINT_INK));
                y += thick;
            }
        }
        if bars.stacked
            && let Some(there) = there(row)
        {
            let end = x_at(from.max(0.0));
            page.svg.text(end + GAP, middle, &scale.value(there), TICK.colour(FAINT_INK));
        }
    }
    page.svg.line((foot, top), (foot, bottom), Pen::of(AXIS, 1.0));
    page.y += LINE + 4.0;
    let title = LABEL.fit(&scale.title(), page.inner()).into_owned();
    if !title.is_empty() {
        let y = page.take(LINE + 4.0) + LINE / 2.0;
        let half = LABEL.width(&title) / 2.0;
        let middle = ((left + right) / 2.0).clamp(MARGIN + half, page.width - MARGIN - half);
        page.svg.text(middle, y, &title, LABEL.middle());
    }
    page.finish(&notes)
}
