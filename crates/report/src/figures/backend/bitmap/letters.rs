//! Letters as outlines, from the font that is built in: DejaVu Sans, whose widths [`Font`] has.
//!
//! [`Font`]: crate::figures::extent::Font

use ab_glyph::{Font as _, FontRef, Outline, OutlineCurve, Point, point};
use ab_glyph_rasterizer::Rasterizer;
use plotters::style::text_anchor::HPos;

use super::{Lettering, bounds};
use crate::escape::xml;
use crate::figures::backend::PngError;

const REGULAR: &[u8] = include_bytes!("../../../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../../../fonts/DejaVuSans-Bold.ttf");

/// The font in its two weights.
pub(super) struct Letters {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
}

/// A letter at its place, in pixels.
pub(super) struct Glyph {
    outline: Outline,
    place: GlyphTransform,
    pub(super) low: Point,
    pub(super) high: Point,
}

/// Transformation of a letter's own coordinates, with y upwards, to pixels.
#[derive(Clone, Copy)]
struct GlyphTransform {
    /// The anchor of the text, and how far along the baseline the letter begins.
    anchor: Point,
    along: f32,
    scale: f32,
    sin: f32,
    cos: f32,
}

impl GlyphTransform {
    fn of(&self, at: Point) -> Point {
        let (x, y) = (self.along + at.x * self.scale, -at.y * self.scale);
        let (sin, cos) = (self.sin, self.cos);
        point(self.anchor.x + x * cos - y * sin, self.anchor.y + x * sin + y * cos)
    }
}

impl Letters {
    pub(super) fn new() -> Result<Self, PngError> {
        let font = |bytes| FontRef::try_from_slice(bytes).map_err(|_| PngError::Font);
        Ok(Self { regular: font(REGULAR)?, bold: font(BOLD)? })
    }

    /// The widths of a letter in both weights, as parts of the font size.
    #[cfg(test)]
    pub(super) fn widths(&self, c: char) -> (f32, f32) {
        let width = |font: &FontRef<'_>| {
            font.h_advance_unscaled(font.glyph_id(c)) / font.units_per_em().unwrap_or(1.0)
        };
        (width(&self.regular), width(&self.bold))
    }

    /// The letters of a text. `pixels` is the number of pixels per unit.
    pub(super) fn set(&self, text: &str, lettering: &Lettering, pixels: f64) -> Vec<Glyph> {
        let font = if lettering.bold { &self.bold } else { &self.regular };
        let size = (lettering.size * pixels) as f32;
        let scale = size / font.units_per_em().unwrap_or(2048.0);
        let text = xml(text);
        let advance = |c: char| font.h_advance_unscaled(font.glyph_id(c)) * scale;
        let width: f32 = text.chars().map(advance).sum();
        let mut along = match lettering.anchor {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        let (sin, cos) = (lettering.degrees.to_radians() as f32).sin_cos();
        let (x, y) = (f64::from(lettering.at.0) * pixels, f64::from(lettering.at.1) * pixels);
        let anchor = point(x as f32, y as f32);
        let mut glyphs = Vec::new();
        for c in text.chars() {
            let place = GlyphTransform { anchor, along, scale, sin, cos };
            along += advance(c);
            // A space has no outline.
            glyphs.extend(font.outline(font.glyph_id(c)).and_then(|o| Glyph::new(o, place)));
        }
        glyphs
    }
}

impl Glyph {
    fn new(outline: Outline, place: GlyphTransform) -> Option<Self> {
        let ab_glyph::Rect { min, max } = outline.bounds;
        let corners = [min, point(min.x, max.y), max, point(max.x, min.y)];
        let (low, high) = bounds(corners.into_iter().map(|corner| place.of(corner)))?;
        // Rounding must not put an edge outside.
        let (low, high) = (point(low.x - 1.0, low.y - 1.0), point(high.x + 1.0, high.y + 1.0));
        Some(Self { outline, place, low, high })
    }

    /// Draws the outline relative to the upper left corner.
    pub(super) fn outline(&self, raster: &mut Rasterizer, low: Point) {
        let at = |letter: Point| {
            let place = self.place.of(letter);
            ab_glyph_rasterizer::point(place.x - low.x, place.y - low.y)
        };
        for curve in &self.outline.curves {
            match *curve {
                OutlineCurve::Line(a, b) => raster.draw_line(at(a), at(b)),
                OutlineCurve::Quad(a, b, c) => raster.draw_quad(at(a), at(b), at(c)),
                OutlineCurve::Cubic(a, b, c, d) => raster.draw_cubic(at(a), at(b), at(c), at(d)),
            }
        }
    }
}
