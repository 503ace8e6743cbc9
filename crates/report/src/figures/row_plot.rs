//! Named rows beside a horizontal value axis: the common part of bars, steps and intervals.

use super::look::{AXIS, GAP, GRID, LABEL, LINE, MARGIN, TICK};
use super::page::Page;
use super::scale::Scale;
use super::svg::Pen;

/// Maximum width of a row's name; longer names are shortened.
pub(crate) const NAME_MAX: f64 = 280.0;

/// The position of the rows and the scale of their values.
#[derive(Debug)]
pub(crate) struct RowPlot {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) scale: Scale,
}

/// The space that text takes beside the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    /// Width of the widest name, left of the rows.
    pub(crate) names: f64,
    /// Width of the widest number, right of its bar.
    pub(crate) numbers: f64,
}

impl RowPlot {
    /// Rows of this total height across the page.
    pub(crate) fn new(page: &mut Page, height: f64, scale: Scale, beside: Beside) -> Self {
        let top = page.take(height);
        let edges = (MARGIN, page.width - MARGIN);
        Self::within(edges, (top, top + height), scale, beside)
    }

    /// Rows between these horizontal and vertical edges, with the space beside them.
    pub(crate) fn within(
        (left, right): (f64, f64),
        (top, bottom): (f64, f64),
        scale: Scale,
        beside: Beside,
    ) -> Self {
        let (left, right) = (left + beside.names + 2.0 * GAP, right - beside.numbers - 2.0 * GAP);
        Self { left, right, top, bottom, scale }
    }

    pub(crate) fn x_at(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.scale.part(value)
    }

    /// Vertical lines at the ticks, which are labelled below where there is space.
    pub(crate) fn draw_grid(&self, page: &mut Page) {
        let mut line = |x: f64, width: f64| {
            page.svg.line((x, self.top), (x, self.bottom), Pen::of(GRID, width));
        };
        self.scale.minor().into_iter().for_each(|minor| line(self.x_at(minor), 0.4));
        let ticks = self.scale.ticks();
        ticks.iter().for_each(|tick| line(self.x_at(tick.at), 1.0));
        let mut taken = f64::NEG_INFINITY;
        for tick in ticks {
            let (x, half) = (self.x_at(tick.at), TICK.width(&tick.label) / 2.0);
            if x - half >= taken {
                page.svg.text(x, self.bottom + LINE / 2.0 + 2.0, &tick.label, TICK.middle());
                taken = x + half + GAP;
            }
        }
    }

    /// The line where bars begin, and the title of the axis below the tick labels.
    pub(crate) fn draw_foot(&self, page: &mut Page, foot: f64) {
        page.svg.line((foot, self.top), (foot, self.bottom), Pen::of(AXIS, 1.0));
        page.y += LINE + 4.0;
        let title = LABEL.fit(&self.scale.title(), page.inner()).into_owned();
        if !title.is_empty() {
            let y = page.take(LINE + 4.0) + LINE / 2.0;
            let half = LABEL.width(&title) / 2.0;
            let middle = (self.left + self.right) / 2.0;
            let middle = middle.clamp(MARGIN + half, page.width - MARGIN - half);
            page.svg.text(middle, y, &title, LABEL.middle());
        }
    }
}
