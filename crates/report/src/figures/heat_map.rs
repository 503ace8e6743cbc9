//! A matrix of coefficients, each shown as a colour and a number.

use proctrace_findings::{Chart, HeatMap};

use super::look::{DIVERGING, FAINT_INK, GAP, INK, LABEL, MARGIN, REST, TICK};
use super::page::Page;

const CELL_MAX: f64 = 62.0;
const CELL_MIN: f64 = 32.0;
const NAME_MAX: f64 = 190.0;
const SCALE_WIDTH: f64 = 70.0;
const TURNED: f64 = -45.0;

pub(super) fn draw(chart: &Chart, map: &HeatMap) -> String {
    let n = map.names.len();
    let widest = map.names.iter().map(|name| LABEL.width(name).min(NAME_MAX)).fold(0.0, f64::max);
    let left = MARGIN + widest + GAP;
    // The last rotated name extends to the right.
    let turned = widest * 0.71 + LABEL.size;
    let beside = turned.max(SCALE_WIDTH);
    let room = super::look::WIDTH - MARGIN - left - beside;
    let cell = (room / n.max(1) as f64).clamp(CELL_MIN, CELL_MAX);
    let right = left + n as f64 * cell;
    let mut page = Page::new(super::look::WIDTH.max(right + beside + MARGIN), &chart.title);

    let top = page.take(turned + n as f64 * cell) + turned;
    for (at, name) in map.names.iter().enumerate() {
        let name = LABEL.fit(name, NAME_MAX);
        let middle = (at as f64 + 0.5) * cell;
        page.svg.text(left - GAP, top + middle, &name, LABEL.end());
        page.svg.text(
            left + middle + 4.0,
            top - GAP,
            &name,
            super::svg::Style::from(LABEL).turned(TURNED),
        );
    }
    for row in 0..n {
        for column in 0..n {
            let value =
                map.values.get(row).and_then(|values| values.get(column)).copied().flatten();
            let value = value.filter(|value| value.is_finite());
            let (x, y) = (left + column as f64 * cell, top + row as f64 * cell);
            let what = format!("{} and {}", map.names[row], map.names[column]);
            let (fill, ink, text) = match value {
                Some(r) => (colour(r), if r.abs() > 0.62 { "#ffffff" } else { INK }, number(r)),
                None => ("#f0f0f0".to_owned(), REST, "–".to_owned()),
            };
            page.svg.told_rect((x, y, cell - 1.0, cell - 1.0), &fill, &what);
            let style = TICK.middle().colour(ink);
            page.svg.text(x + (cell - 1.0) / 2.0, y + (cell - 1.0) / 2.0, &text, style);
        }
    }
    // The colour scale.
    let (x, steps, height) = (right + 2.0 * GAP, 40, (n as f64 * cell).min(240.0));
    for step in 0..steps {
        let r = 1.0 - 2.0 * (f64::from(step) + 0.5) / f64::from(steps);
        let slice = height / f64::from(steps);
        page.svg.rect(x, top + f64::from(step) * slice, 14.0, slice + 0.5, &colour(r));
    }
    if n > 0 {
        for (part, label) in [(0.0, "1"), (0.5, "0"), (1.0, "−1")] {
            let y = top + (height * part).clamp(TICK.size / 2.0, height - TICK.size / 2.0);
            page.svg.text(x + 14.0 + GAP, y, label, TICK.colour(FAINT_INK));
        }
    }
    page.finish(&chart.notes)
}

/// Interpolates between the colours of the scheme.
fn colour(r: f64) -> String {
    let place = (r.clamp(-1.0, 1.0) + 1.0) / 2.0 * (DIVERGING.len() - 1) as f64;
    let at = (place.floor() as usize).min(DIVERGING.len() - 2);
    let part = place - at as f64;
    let mix = |channel: usize| {
        let (a, b) = (f64::from(DIVERGING[at][channel]), f64::from(DIVERGING[at + 1][channel]));
        (a + (b - a) * part).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
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
        assert_eq!(colour(0.0), "#f7f7f7");
        assert_eq!(colour(1.0), "#b2182b");
        assert_eq!(colour(-7.0), "#2166ac");
        assert_eq!(number(-0.001), "0.00");
        assert_eq!(number(-0.126), "−0.13");
    }
}
