//! A backend that draws on plotters' bitmap backend, which holds and blends the pixels.
//!
//! plotters' own rasterizer rounds edges to whole pixels, so that thin bars would differ in
//! thickness. Here the part of each pixel that a shape covers decides how much of its colour the
//! pixel takes.

mod letters;

use std::convert::Infallible;

use ab_glyph::{Point, point};
use ab_glyph_rasterizer::Rasterizer;
use plotters::backend::BitMapBackend;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use self::letters::Letters;
use super::{DASHES, ENDLESS, Lettering, Surface, UNITS, Way, is_visible, text_size};
use crate::figures::backend::PngError;

type Done = Result<(), DrawingErrorKind<Infallible>>;

/// Minimum part of a pixel that is seen.
const COVERED_MIN: f32 = 1.0 / 512.0;

/// A picture under construction.
pub(crate) struct Bitmap<'a> {
    pixels: BitMapBackend<'a>,
    width: i32,
    height: i32,
    /// Pixels per unit.
    scale: f64,
    coverage: Rasterizer,
    letters: Letters,
    dashed: bool,
}

impl<'a> Bitmap<'a> {
    /// A bitmap in a buffer of three bytes per pixel. `density` is the number of its pixels per
    /// pixel of the figure.
    pub(crate) fn new(
        buffer: &'a mut [u8],
        (width, height): (u32, u32),
        density: f64,
    ) -> Result<Self, PngError> {
        let pixels = BitMapBackend::with_buffer_and_format(buffer, (width, height))
            .map_err(|error| PngError::Drawing(error.to_string()))?;
        Ok(Self {
            pixels,
            width: i32::try_from(width).unwrap_or(i32::MAX),
            height: i32::try_from(height).unwrap_or(i32::MAX),
            scale: density / UNITS,
            coverage: Rasterizer::new(1, 1),
            letters: Letters::new()?,
            dashed: false,
        })
    }

    fn place(&self, (x, y): BackendCoord) -> (f64, f64) {
        (f64::from(x) * self.scale, f64::from(y) * self.scale)
    }

    /// Blends a colour into a pixel. plotters ignores pixels outside of the picture.
    fn blend(&mut self, x: i32, y: i32, colour: BackendColor, part: f64) {
        // It also never fails for a buffer of the right size.
        let _ = self.pixels.draw_pixel((x, y), colour.mix(part));
    }

    /// Fills a rectangle between edges in pixels.
    fn fill_rect(
        &mut self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        colour: BackendColor,
    ) {
        let (left, right) = (left.max(0.0), right.min(f64::from(self.width)));
        let (top, bottom) = (top.max(0.0), bottom.min(f64::from(self.height)));
        if left >= right || top >= bottom {
            return;
        }
        // The pixels that are covered as a whole, in one step.
        let (x0, x1) = (left.ceil() as i32, right.floor() as i32);
        let (y0, y1) = (top.ceil() as i32, bottom.floor() as i32);
        let has_inner = x0 < x1 && y0 < y1;
        if has_inner {
            let _ = self.pixels.draw_rect((x0, y0), (x1, y1), &colour, true);
        }
        let covered = |from: f64, to: f64, at: i32| {
            (to.min(f64::from(at) + 1.0) - from.max(f64::from(at))).max(0.0)
        };
        for y in top.floor() as i32..bottom.ceil() as i32 {
            let high = covered(top, bottom, y);
            let mut x = left.floor() as i32;
            while x < right.ceil() as i32 {
                if has_inner && (y0..y1).contains(&y) && (x0..x1).contains(&x) {
                    x = x1;
                    continue;
                }
                self.blend(x, y, colour, high * covered(left, right, x));
                x += 1;
            }
        }
    }

    /// Fills closed outlines, in pixels. Outlines inside of others that run the other way are
    /// holes.
    fn fill(&mut self, outlines: &[Vec<(f64, f64)>], colour: BackendColor) {
        // Beyond the picture nothing is seen; the memory for the coverage stays bounded.
        let inside = |at: f64, most: i32| at.clamp(-2.0, f64::from(most) + 2.0) as f32;
        let outlines: Vec<Vec<Point>> = outlines
            .iter()
            .map(|outline| {
                let corners = outline.iter();
                corners
                    .map(|(x, y)| point(inside(*x, self.width), inside(*y, self.height)))
                    .collect()
            })
            .collect();
        let Some((low, high)) = bounds(outlines.iter().flatten().copied()) else { return };
        self.cover(low, high, colour, |raster, low| {
            for outline in &outlines {
                let corner = |at: usize| outline[at % outline.len()] - low;
                (0..outline.len()).for_each(|at| raster.draw_line(corner(at), corner(at + 1)));
            }
        });
    }

    /// Rasterizes outlines between two corners and blends the colour into what they cover.
    fn cover(
        &mut self,
        low: Point,
        high: Point,
        colour: BackendColor,
        draw: impl FnOnce(&mut Rasterizer, Point),
    ) {
        let low = point(low.x.floor(), low.y.floor());
        // An edge at the very right needs a column of its own.
        let size = |from: f32, to: f32| (to.ceil() - from).max(0.0) as usize + 2;
        self.coverage.reset(size(low.x, high.x), size(low.y, high.y));
        draw(&mut self.coverage, low);
        let (left, top) = (low.x as i32, low.y as i32);
        let pixels = &mut self.pixels;
        self.coverage.for_each_pixel_2d(|x, y, part| {
            if part > COVERED_MIN {
                let at = (left + x as i32, top + y as i32);
                let _ = pixels.draw_pixel(at, colour.mix(f64::from(part.min(1.0))));
            }
        });
    }

    /// A line between two places in pixels, without dashes.
    fn segment(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: BackendColor) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        if length == 0.0 {
            return;
        }
        // Half of the width to either side.
        let (nx, ny) = (-dy / length * width / 2.0, dx / length * width / 2.0);
        if dx == 0.0 || dy == 0.0 {
            let low = (from.0.min(to.0) - nx.abs(), from.1.min(to.1) - ny.abs());
            let high = (from.0.max(to.0) + nx.abs(), from.1.max(to.1) + ny.abs());
            return self.fill_rect(low, high, colour);
        }
        let corner = |(x, y): (f64, f64), side: f64| (x + side * nx, y + side * ny);
        let corners = [corner(from, 1.0), corner(to, 1.0), corner(to, -1.0), corner(from, -1.0)];
        self.fill(&[corners.into()], colour);
    }

    fn dashed_segment(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        width: f64,
        colour: BackendColor,
    ) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let on_it = |at: f64| {
            let part = (at / length).min(1.0);
            (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part)
        };
        let [dash, gap] = DASHES.map(|units| f64::from(units) * self.scale);
        let mut at = 0.0;
        while at < length {
            self.segment(on_it(at), on_it(at + dash), width, colour);
            at += dash + gap;
        }
    }
}

/// The smallest and the largest coordinates.
fn bounds(points: impl Iterator<Item = Point>) -> Option<(Point, Point)> {
    points.fold(None, |bounds, at| {
        let (low, high) = bounds.unwrap_or((at, at));
        Some((point(low.x.min(at.x), low.y.min(at.y)), point(high.x.max(at.x), high.y.max(at.y))))
    })
}

/// The outline of a disc, clockwise or not.
fn disc((x, y): (f64, f64), radius: f64, clockwise: bool) -> Vec<(f64, f64)> {
    let steps = (radius * 4.0).clamp(16.0, 200.0) as u32;
    let turn = if clockwise { 1.0 } else { -1.0 } * std::f64::consts::TAU / f64::from(steps);
    (0..steps)
        .map(|step| (turn * f64::from(step)).sin_cos())
        .map(|(sin, cos)| (x + radius * cos, y + radius * sin))
        .collect()
}

impl Surface for Bitmap<'_> {
    fn draw_as<R>(&mut self, way: Way<'_>, draw: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.dashed;
        self.dashed |= matches!(way, Way::Dashed);
        let result = draw(self);
        self.dashed = before;
        result
    }

    fn draw_lettering(&mut self, text: &str, lettering: &Lettering) {
        if lettering.colour.alpha > 0.0 {
            for glyph in self.letters.set(text, lettering, self.scale) {
                self.cover(glyph.low, glyph.high, lettering.colour, |raster, low| {
                    glyph.outline(raster, low);
                });
            }
        }
    }
}

impl DrawingBackend for Bitmap<'_> {
    type ErrorType = Infallible;

    parts_of_all_backends!();

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (x0, y0): BackendCoord,
        (x1, y1): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Done {
        if !fill {
            return self.draw_path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], style);
        }
        let low = self.place((x0.min(x1), y0.min(y1)));
        let high = self.place((x0.max(x1), y0.max(y1)));
        self.fill_rect(low, high, style.color());
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Done {
        if !is_visible(style) {
            return Ok(());
        }
        let points: Vec<(f64, f64)> = points.into_iter().map(|at| self.place(at)).collect();
        let (width, colour) = (f64::from(style.stroke_width()) * self.scale, style.color());
        for pair in points.windows(2) {
            if self.dashed {
                self.dashed_segment(pair[0], pair[1], width, colour);
            } else {
                self.segment(pair[0], pair[1], width, colour);
            }
        }
        // Thick lines have round corners; those of thin ones are not seen.
        if width > 1.5 && !self.dashed && points.len() > 2 {
            for corner in &points[1..points.len() - 1] {
                self.fill(&[disc(*corner, width / 2.0, true)], colour);
            }
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Done {
        let (at, radius) = (self.place(center), f64::from(radius) * self.scale);
        if fill {
            self.fill(&[disc(at, radius, true)], style.color());
        } else {
            let half = f64::from(style.stroke_width()) * self.scale / 2.0;
            let inner = disc(at, (radius - half).max(0.0), false);
            self.fill(&[disc(at, radius + half, true), inner], style.color());
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Done {
        let corners: Vec<(f64, f64)> = corners.into_iter().map(|at| self.place(at)).collect();
        self.fill(&[corners], style.color());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
