//! The frame of every figure: title, legend, notes. Elements are placed below each other, so they
//! never overlap.

use proctrace_findings::Chart;

use super::extent::Font;
use super::look::{FAINT_INK, GAP, LABEL, LINE, MARGIN, NOTE, TITLE};
use super::svg::{Pen, Svg};

/// A picture that grows downwards.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) svg: Svg,
    pub(crate) width: f64,
    /// Vertical position of the next element.
    pub(crate) y: f64,
    title: String,
}

/// The symbol of a legend entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Swatch {
    /// A filled area of this colour.
    Area(&'static str),
    /// A line.
    Line(Pen),
}

const SWATCH: f64 = 12.0;
const ENTRY_GAP: f64 = 18.0;
/// Maximum width of a series name; longer names are truncated.
const ENTRY_MAX: f64 = 320.0;

impl Page {
    /// A page with a title.
    pub(crate) fn new(width: f64, title: &str) -> Self {
        let mut page = Self { svg: Svg::default(), width, y: MARGIN, title: title.to_owned() };
        if !title.is_empty() {
            let shown = TITLE.fit(title, page.inner());
            page.svg.text(MARGIN, page.y + TITLE.size / 2.0, &shown, TITLE);
            page.y += TITLE.size + 10.0;
        }
        page
    }

    /// A page with the title of a chart.
    pub(crate) fn of(chart: &Chart) -> Self {
        Self::new(super::look::WIDTH, &chart.title)
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

    /// A legend, wrapped to as many lines as needed.
    pub(crate) fn legend(&mut self, entries: &[(Swatch, String)]) {
        self.legend_within(MARGIN, self.width - MARGIN, entries);
    }

    /// A legend between two horizontal edges.
    pub(crate) fn legend_within(&mut self, left: f64, right: f64, entries: &[(Swatch, String)]) {
        if entries.is_empty() {
            return;
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
            self.swatch(x, y, *swatch);
            self.svg.text(x + SWATCH + GAP, y, &name, LABEL);
            x += width + ENTRY_GAP;
        }
        self.y = y + LINE / 2.0 + 8.0;
    }

    /// Draws the symbol of a legend entry.
    pub(crate) fn swatch(&mut self, x: f64, y: f64, swatch: Swatch) {
        match swatch {
            Swatch::Area(colour) => self.svg.rect(x, y - 5.0, SWATCH, 10.0, colour),
            Swatch::Line(pen) => self.svg.line((x, y), (x + SWATCH, y), pen),
        }
    }

    /// Notes in small type.
    pub(crate) fn notes<'a>(&mut self, notes: impl IntoIterator<Item = &'a str>) {
        self.small(NOTE, notes);
    }

    fn small<'a>(&mut self, font: Font, notes: impl IntoIterator<Item = &'a str>) {
        for note in notes {
            for line in font.wrap(note, self.inner()) {
                self.svg.text(MARGIN, self.y + LINE / 2.0, &line, font.colour(FAINT_INK));
                self.y += LINE;
            }
        }
    }

    /// Finishes the picture, with the figure's notes at the bottom.
    pub(crate) fn finish(mut self, notes: &[String]) -> String {
        if !notes.is_empty() {
            self.y += 6.0;
            self.notes(notes.iter().map(String::as_str));
        }
        let height = self.y + MARGIN - 4.0;
        self.svg.document(self.width, height, &self.title)
    }
}
