//! Elements that plotters lacks, and the styles of figures as those of plotters.

use std::convert::Infallible;
use std::slice;

use plotters::element::{Drawable, DynElement, IntoDynElement, PointCollection};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color as _, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle,
};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::backend::{Lettering, Surface, UNITS, Way, units};
use super::extent::Font;
use super::look::{Colour, INK};

type Done = Result<(), DrawingErrorKind<Infallible>>;

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) font: Font,
    pub(crate) anchor: Anchor,
    pub(crate) colour: Colour,
}

/// The alignment of a text relative to its anchor point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl From<Font> for Style {
    fn from(font: Font) -> Self {
        Self { font, anchor: Anchor::Start, colour: INK }
    }
}

impl Font {
    /// Text that ends at its anchor point.
    pub(crate) fn end(self) -> Style {
        Style { anchor: Anchor::End, ..self.into() }
    }

    /// Text centred at its anchor point.
    pub(crate) fn middle(self) -> Style {
        Style { anchor: Anchor::Middle, ..self.into() }
    }

    /// Text in another colour.
    pub(crate) fn colour(self, colour: Colour) -> Style {
        Style { colour, ..self.into() }
    }
}

impl Style {
    pub(crate) fn colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    fn h_pos(self) -> HPos {
        match self.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        }
    }

    /// The style as plotters has it, vertically centred.
    pub(crate) fn of_plotters(self) -> TextStyle<'static> {
        let weight = if self.font.bold { FontStyle::Bold } else { FontStyle::Normal };
        TextStyle {
            font: FontDesc::new(FontFamily::SansSerif, self.font.size * UNITS, weight),
            color: self.colour.to_backend_color(),
            pos: Pos::new(self.h_pos(), VPos::Center),
        }
    }
}

/// The style of a line; its width is in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pen {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) dashed: bool,
}

impl Pen {
    pub(crate) const fn of(colour: Colour, width: f64) -> Self {
        Self { colour, width, dashed: false }
    }

    pub(crate) const fn dashed(colour: Colour, width: f64) -> Self {
        Self { colour, width, dashed: true }
    }

    /// The style as plotters has it, which knows no dashes.
    pub(crate) fn of_plotters(self) -> ShapeStyle {
        self.colour.stroke_width(units(self.width).unsigned_abs())
    }
}

/// An element that is drawn in a way of its own.
pub(crate) struct As<'w, S: Surface, C: Clone> {
    way: Way<'w>,
    element: DynElement<'w, S, C>,
}

/// An element that is drawn in a way of its own.
pub(crate) fn drawn_as<'w, S: Surface, C: Clone>(
    way: Way<'w>,
    element: impl IntoDynElement<'w, S, C>,
) -> As<'w, S, C> {
    As { way, element: element.into_dyn() }
}

impl<'b, S: Surface, C: Clone + 'b> PointCollection<'b, C> for &'b As<'_, S, C> {
    type Point = &'b C;
    type IntoIter = &'b Vec<C>;

    fn point_iter(self) -> Self::IntoIter {
        self.element.point_iter()
    }
}

impl<S: Surface, C: Clone> Drawable<S> for As<'_, S, C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        backend: &mut S,
        size: (u32, u32),
    ) -> Done {
        backend.draw_as(self.way, |backend| self.element.draw(points, backend, size))
    }
}

/// Tells plotters the points of an element.
macro_rules! points {
    ($element:ty, |$name:ident| $points:expr) => {
        impl<'b, C: 'b> PointCollection<'b, C> for &'b $element {
            type Point = &'b C;
            type IntoIter = &'b [C];

            fn point_iter(self) -> &'b [C] {
                let $name = self;
                $points
            }
        }
    };
}

points!(Turned<'_, C>, |element| slice::from_ref(&element.at));
points!(Block<C>, |element| &element.corners);
points!(Areas<C>, |element| &element.corners);
points!(Segments<C>, |element| &element.ends);
points!(Marker<C>, |element| slice::from_ref(&element.at));

/// A text turned about its anchor point, which is on its baseline.
#[derive(Debug)]
pub(crate) struct Turned<'t, C> {
    pub(crate) at: C,
    pub(crate) text: &'t str,
    pub(crate) style: Style,
    /// Clockwise.
    pub(crate) degrees: f64,
}

impl<C, S: Surface> Drawable<S> for Turned<'_, C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut S,
        _: (u32, u32),
    ) -> Done {
        if let Some(at) = points.next() {
            let Style { font, colour, .. } = self.style;
            let lettering = Lettering {
                at,
                size: font.size * UNITS,
                bold: font.bold,
                colour: colour.to_backend_color(),
                anchor: self.style.h_pos(),
                degrees: self.degrees,
            };
            backend.draw_lettering(self.text, &lettering);
        }
        Ok(())
    }
}

/// A filled rectangle that is never too small to see.
#[derive(Debug)]
pub(crate) struct Block<C> {
    /// Opposite corners.
    pub(crate) corners: [C; 2],
    pub(crate) colour: Colour,
    /// Free space at the left, the top, the right and the bottom edge, in pixels.
    pub(crate) inset: [f64; 4],
    /// Minimum width and height in pixels. The rectangle grows to the right and upwards.
    pub(crate) least: (f64, f64),
}

impl<C, S: Surface> Drawable<S> for Block<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut S,
        _: (u32, u32),
    ) -> Done {
        let (Some(a), Some(b)) = (points.next(), points.next()) else { return Ok(()) };
        let [left, top, right, bottom] = self.inset.map(units);
        let (x0, y1) = (a.0.min(b.0) + left, a.1.max(b.1) - bottom);
        let x1 = (a.0.max(b.0) - right).max(x0 + units(self.least.0));
        let y0 = (a.1.min(b.1) + top).min(y1 - units(self.least.1));
        backend.draw_rect((x0, y0), (x1, y1), &self.colour.to_backend_color(), true)
    }
}

/// Polygons that do not overlap, in one style.
#[derive(Debug)]
pub(crate) struct Areas<C> {
    corners: Vec<C>,
    /// The number of corners of each.
    lengths: Vec<usize>,
    colour: RGBAColor,
}

impl<C> Areas<C> {
    pub(crate) fn new(
        polygons: impl IntoIterator<Item = Vec<C>>,
        colour: Colour,
        opacity: f64,
    ) -> Self {
        let mut areas =
            Self { corners: Vec::new(), lengths: Vec::new(), colour: colour.mix(opacity) };
        for polygon in polygons {
            areas.lengths.push(polygon.len());
            areas.corners.extend(polygon);
        }
        areas
    }
}

impl<C, S: Surface> Drawable<S> for Areas<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut S,
        _: (u32, u32),
    ) -> Done {
        let colour = self.colour.to_backend_color();
        backend.draw_as(Way::Joined, |backend| {
            self.lengths
                .iter()
                .try_for_each(|length| backend.fill_polygon(points.by_ref().take(*length), &colour))
        })
    }
}

/// Separate straight lines in one style, given by their ends.
#[derive(Debug)]
pub(crate) struct Segments<C> {
    pub(crate) ends: Vec<C>,
    pub(crate) pen: Pen,
}

impl<C, S: Surface> Drawable<S> for Segments<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut S,
        _: (u32, u32),
    ) -> Done {
        let style = self.pen.of_plotters();
        while let (Some(from), Some(to)) = (points.next(), points.next()) {
            backend.draw_line(from, to, &style)?;
        }
        Ok(())
    }
}

/// A measurement, with a distinct shape per series for readers who cannot distinguish the colours:
/// a circle, a square, a triangle, a diamond.
#[derive(Debug)]
pub(crate) struct Marker<C> {
    pub(crate) at: C,
    pub(crate) series: usize,
    pub(crate) colour: Colour,
}

impl<C, S: Surface> Drawable<S> for Marker<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut S,
        _: (u32, u32),
    ) -> Done {
        let Some((x, y)) = points.next() else { return Ok(()) };
        let colour = self.colour.to_backend_color();
        let corners: &[(i32, i32)] = match self.series % 4 {
            0 => return backend.draw_circle((x, y), 45, &colour, true),
            1 => &[(-40, -40), (40, -40), (40, 40), (-40, 40)],
            2 => &[(0, -55), (50, 40), (-50, 40)],
            _ => &[(0, -60), (50, 0), (0, 60), (-50, 0)],
        };
        backend.fill_polygon(corners.iter().map(|(dx, dy)| (x + dx, y + dy)), &colour)
    }
}
