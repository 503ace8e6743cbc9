//! The frame of every figure: title, legend, notes. Elements are placed below each other, so they
//! never overlap.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::Color as _;
use proctrace_findings::Chart;

use super::backend::{Drawn, Size, Surface, Way, units};
use super::elements::{Pen, Style, Turned, drawn_as};
use super::extent::Font;
use super::look::{Colour, FAINT_INK, GAP, LABEL, LINE, MARGIN, NOTE, TITLE};

/// A picture that grows downwards. Its methods take pixels, from the upper left corner.
pub(crate) struct Page<S: Surface> {
    pub(crate) area: DrawingArea<S, Shift>,
    pub(crate) width: f64,
    /// Vertical position of the next element.
    pub(crate) y: f64,
}

/// The symbol of a legend entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Swatch {
    /// A filled area of this colour.
    Area(Colour),
    /// A line.
    Line(Pen),
}

const SWATCH: f64 = 12.0;
const ENTRY_GAP: f64 = 18.0;
/// Maximum width of a series name; longer names are truncated.
const ENTRY_MAX: f64 = 320.0;

/// A position in units.
pub(crate) fn at(x: f64, y: f64) -> (i32, i32) {
    (units(x), units(y))
}

impl<S: Surface> Page<S> {
    /// A page with a title.
    pub(crate) fn new(canvas: &Rc<RefCell<S>>, width: f64, title: &str) -> Drawn<Self> {
        let mut page = Self { area: DrawingArea::from(canvas), width, y: MARGIN };
        if !title.is_empty() {
            let shown = TITLE.fit(title, page.inner());
            page.text(MARGIN, page.y + TITLE.size / 2.0, &shown, TITLE)?;
            page.y += TITLE.size + 10.0;
        }
        Ok(page)
    }

    /// A page with the title of a chart.
    pub(crate) fn of(canvas: &Rc<RefCell<S>>, chart: &Chart) -> Drawn<Self> {
        Self::new(canvas, super::look::WIDTH, &chart.title)
    }

    /// Width between the margins.
    pub(crate) fn inner(&self) -> f64 {
        self.width - 2.0 * MARGIN
    }

    /// Reserves full-width space of this height, and returns its top.
    pub(crate) fn take(&mut self, height: f64) -> f64 {
        let top = self.y;
        self.y += height;
        top
    }

    /// Text that is vertically centred at `y`.
    pub(crate) fn text(&self, x: f64, y: f64, text: &str, style: impl Into<Style>) -> Drawn {
        self.area.draw(&Text::new(text, at(x, y), style.into().of_plotters()))
    }

    /// Text that is turned clockwise about a point on its baseline.
    pub(crate) fn turned(
        &self,
        (x, y): (f64, f64),
        text: &str,
        style: impl Into<Style>,
        degrees: f64,
    ) -> Drawn {
        self.area.draw(&Turned { at: at(x, y), text, style: style.into(), degrees })
    }

    pub(crate) fn rect(&self, x: f64, y: f64, width: f64, height: f64, fill: Colour) -> Drawn {
        let corners = [at(x, y), at(x + width.max(0.0), y + height.max(0.0))];
        self.area.draw(&Rectangle::new(corners, fill.filled()))
    }

    /// A rectangle with a tooltip.
    pub(crate) fn told_rect(
        &self,
        (x, y, width, height): (f64, f64, f64, f64),
        fill: Colour,
        what: &str,
    ) -> Drawn {
        let corners = [at(x, y), at(x + width, y + height)];
        self.area.draw(&drawn_as(Way::Told(what), Rectangle::new(corners, fill.filled())))
    }

    pub(crate) fn line(&self, from: (f64, f64), to: (f64, f64), pen: Pen) -> Drawn {
        let line = PathElement::new([at(from.0, from.1), at(to.0, to.1)], pen.of_plotters());
        if pen.dashed {
            self.area.draw(&drawn_as(Way::Dashed, line))
        } else {
            self.area.draw(&line)
        }
    }

    /// A legend, wrapped to as many lines as needed.
    pub(crate) fn legend(&mut self, entries: &[(Swatch, String)]) -> Drawn {
        self.legend_within(MARGIN, self.width - MARGIN, entries)
    }

    /// A legend between two horizontal edges.
    pub(crate) fn legend_within(
        &mut self,
        left: f64,
        right: f64,
        entries: &[(Swatch, String)],
    ) -> Drawn {
        if entries.is_empty() {
            return Ok(());
        }
        let mut x = left;
        let mut y = self.y + LINE / 2.0;
        for (swatch, name) in entries {
            let name = LABEL.fit(name, ENTRY_MAX.min(right - left - SWATCH - GAP));
            let width = SWATCH + GAP + LABEL.width(&name);
            if x > left && x + width > right {
                x = left;
                y += LINE + 2.0;
            }
            self.swatch(x, y, *swatch)?;
            self.text(x + SWATCH + GAP, y, &name, LABEL)?;
            x += width + ENTRY_GAP;
        }
        self.y = y + LINE / 2.0 + 8.0;
        Ok(())
    }

    /// Draws the symbol of a legend entry.
    pub(crate) fn swatch(&self, x: f64, y: f64, swatch: Swatch) -> Drawn {
        match swatch {
            Swatch::Area(colour) => self.rect(x, y - 5.0, SWATCH, 10.0, colour),
            Swatch::Line(pen) => self.line((x, y), (x + SWATCH, y), pen),
        }
    }

    /// Notes in small type.
    pub(crate) fn notes<'n>(&mut self, notes: impl IntoIterator<Item = &'n str>) -> Drawn {
        self.small(NOTE, notes)
    }

    fn small<'n>(&mut self, font: Font, notes: impl IntoIterator<Item = &'n str>) -> Drawn {
        for note in notes {
            for line in font.wrap(note, self.inner()) {
                self.text(MARGIN, self.y + LINE / 2.0, &line, font.colour(FAINT_INK))?;
                self.y += LINE;
            }
        }
        Ok(())
    }

    /// Finishes the picture, with the figure's notes at the bottom.
    pub(crate) fn finish(mut self, notes: &[String]) -> Drawn<Size> {
        if !notes.is_empty() {
            self.y += 6.0;
            self.notes(notes.iter().map(String::as_str))?;
        }
        Ok(Size { width: self.width, height: self.y + MARGIN - 4.0 })
    }
}
