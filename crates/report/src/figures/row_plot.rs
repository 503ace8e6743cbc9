//! A plotters chart of named rows over a horizontal value axis: the common part of bars, steps and
//! intervals.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::PathElement;
use plotters::style::TRANSPARENT;

use super::backend::{Drawn, Surface, units};
use super::coordinates::{Rows, Ticked};
use super::elements::Pen;
use super::look::{AXIS, GAP, GRID, LABEL, LINE, MARGIN, TICK};
use super::page::Page;
use super::plot::title_below;
use super::scale::Scale;

/// Maximum width of a row's name; longer names are shortened.
pub(crate) const NAME_MAX: f64 = 280.0;
/// Half of the distance of tick labels; the ticks themselves are not drawn.
const TICK_LENGTH: f64 = 2.0;

/// The chart, and the position of its rows in pixels.
pub(crate) struct RowPlot<S: Surface> {
    pub(crate) chart: ChartContext<'static, S, Cartesian2d<Ticked, Rows>>,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) scale: Scale,
    /// Height of a row.
    pitch: f64,
}

/// The rows of a plot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSizes {
    pub(crate) count: usize,
    /// Height of each.
    pub(crate) pitch: f64,
    /// Free space below the last.
    pub(crate) below: f64,
    /// Width of the widest name, left of the rows.
    pub(crate) names: f64,
    /// Width of the widest number, right of its bar.
    pub(crate) numbers: f64,
}

impl RowSizes {
    fn height(self) -> f64 {
        self.count as f64 * self.pitch + self.below
    }
}

impl<S: Surface> RowPlot<S> {
    /// Rows across the page, with space for the tick labels and the title of their axis.
    pub(crate) fn new(page: &mut Page<S>, scale: Scale, rows: RowSizes) -> Drawn<Self> {
        let top = page.take(rows.height() + LINE + 4.0);
        if !scale.title().is_empty() {
            page.take(LINE + 4.0);
        }
        Self::within(page, (MARGIN, page.width - MARGIN), top, scale, rows)
    }

    /// Rows between these horizontal edges, with the space beside them.
    pub(crate) fn within(
        page: &Page<S>,
        (left, right): (f64, f64),
        top: f64,
        scale: Scale,
        rows: RowSizes,
    ) -> Drawn<Self> {
        let (left, right) = (left + rows.names + 2.0 * GAP, right - rows.numbers - 2.0 * GAP);
        let bottom = top + rows.height();
        let below = LINE + 4.0 + if scale.title().is_empty() { 0.0 } else { LINE + 2.0 };
        // plotters ends an axis a unit before the edge.
        let size = (units(right) - units(left) + 1, units(bottom + below) - units(top) + 1);
        let area = page.area.clone().shrink((units(left), units(top)), size);
        let chart = ChartBuilder::on(&area)
            .x_label_area_size(units(bottom + below) - units(bottom))
            .build_cartesian_2d(
                scale.clone().ticked().thinned(right - left),
                Rows { count: rows.height() / rows.pitch, downwards: true },
            )?;
        Ok(Self { chart, left, right, top, scale, pitch: rows.pitch })
    }

    pub(crate) fn x_at(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.scale.part(value)
    }

    /// The centre of a row.
    pub(crate) fn middle(&self, row: usize) -> f64 {
        self.top + (row as f64 + 0.5) * self.pitch
    }

    /// A distance in pixels, in rows.
    pub(crate) fn rows(&self, px: f64) -> f64 {
        px / self.pitch
    }

    /// Vertical lines at the ticks, which are labelled below where there is space.
    pub(crate) fn draw_grid(&mut self) -> Drawn {
        self.draw_mesh(None)
    }

    /// The same, with the title of the axis below.
    pub(crate) fn draw_titled_grid(&mut self, page: &Page<S>) -> Drawn {
        let title = title_below(page, &self.scale, (self.left + self.right) / 2.0);
        self.draw_mesh((!title.is_empty()).then_some(title))
    }

    fn draw_mesh(&mut self, title: Option<String>) -> Drawn {
        let mut mesh = self.chart.configure_mesh();
        mesh.light_line_style(Pen::of(GRID, 0.4).of_plotters())
            .bold_line_style(Pen::of(GRID, 1.0).of_plotters())
            .axis_style(TRANSPARENT)
            .x_label_style(TICK.middle().of_plotters())
            .axis_desc_style(LABEL.middle().of_plotters())
            .set_all_tick_mark_size(units(TICK_LENGTH));
        if let Some(title) = title {
            mesh.x_desc(title);
        }
        mesh.draw()
    }

    /// The line where bars begin.
    pub(crate) fn draw_foot(&self, foot: f64) -> Drawn {
        let rows = self.chart.y_range();
        let ends = [(foot, rows.start), (foot, rows.end)];
        self.chart.plotting_area().draw(&PathElement::new(ends, Pen::of(AXIS, 1.0).of_plotters()))
    }
}
