//! Surfaces on which figures are drawn: plotters' drawing backends, extended by what plotters has
//! no words for.

/// The methods of a backend that do not depend on its format.
macro_rules! parts_of_all_backends {
    () => {
        fn get_size(&self) -> (u32, u32) {
            ENDLESS
        }

        fn ensure_prepared(&mut self) -> Done {
            Ok(())
        }

        fn present(&mut self) -> Done {
            Ok(())
        }

        fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Done {
            self.draw_rect((x, y), (x + 1, y + 1), &color, true)
        }

        fn draw_line<S: BackendStyle>(
            &mut self,
            from: BackendCoord,
            to: BackendCoord,
            style: &S,
        ) -> Done {
            self.draw_path([from, to], style)
        }

        fn draw_text<T: BackendTextStyle>(
            &mut self,
            text: &str,
            style: &T,
            at: BackendCoord,
        ) -> Done {
            self.draw_lettering(text, &Lettering::of(style, at));
            Ok(())
        }

        fn estimate_text_size<T: BackendTextStyle>(
            &self,
            text: &str,
            style: &T,
        ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
            Ok(text_size(text, style))
        }
    };
}

pub(crate) mod bitmap;
mod error;
mod path;
pub(crate) mod svg;

use std::convert::Infallible;

use plotters::drawing::DrawingAreaErrorKind;
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, FontStyle,
    FontTransform,
};

use super::extent::Font;

pub use self::error::PngError;

/// Backends count in tenths of a pixel: plotters' coordinates are whole numbers.
pub(crate) const UNITS: f64 = 10.0;
/// The size that backends report, in units. Figures grow downwards, so that their height is known
/// last.
const ENDLESS: (u32, u32) = (10_000_000, 10_000_000);

/// Lengths of dashes and of the gaps between them, in units.
const DASHES: [u32; 2] = [50, 30];

/// The result of drawing. Backends write to memory, which does not fail; plotters itself can.
pub(crate) type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<Infallible>>;

/// A length or position in pixels, as units.
pub(crate) fn units(px: f64) -> i32 {
    let most = f64::from(ENDLESS.0);
    if px.is_finite() { (px * UNITS).round().clamp(-most, most) as i32 } else { 0 }
}

/// The width and height of a finished figure, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Way in which shapes are drawn, beyond their style.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'a> {
    /// With a tooltip, where the format has tooltips.
    Told(&'a str),
    /// With dashed lines.
    Dashed,
    /// As one shape where the format allows it: they do not overlap.
    Joined,
}

/// A backend for figures.
pub(crate) trait Surface: DrawingBackend<ErrorType = Infallible> {
    /// Draws in a way of its own.
    fn draw_as<R>(&mut self, way: Way<'_>, draw: impl FnOnce(&mut Self) -> R) -> R;

    /// Draws text that plotters cannot turn: by any angle, with the anchor on its baseline.
    fn draw_lettering(&mut self, text: &str, lettering: &Lettering);
}

/// Position and form of a text.
#[derive(Clone, Copy)]
pub(crate) struct Lettering {
    /// The anchor on the baseline, in units.
    pub(crate) at: BackendCoord,
    /// The font size in units.
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) colour: BackendColor,
    /// The part of the text that is at the anchor.
    pub(crate) anchor: HPos,
    /// Rotation about the anchor, clockwise.
    pub(crate) degrees: f64,
}

/// Position of the baseline in a line of text, as parts of the font size: below its top, below its
/// centre, above its bottom.
const BASELINES: (f64, f64, f64) = (0.9, 0.36, 0.3);

impl Lettering {
    /// Text in a style of plotters at an anchor point.
    fn of<T: BackendTextStyle>(style: &T, (x, y): BackendCoord) -> Self {
        let size = style.size();
        let below = match style.anchor().v_pos {
            VPos::Top => BASELINES.0,
            VPos::Center => BASELINES.1,
            VPos::Bottom => -BASELINES.2,
        };
        let below = (below * size).round() as i32;
        let (dx, dy) = style.transform().transform(0, below);
        let degrees = match style.transform() {
            FontTransform::None => 0.0,
            FontTransform::Rotate90 => 90.0,
            FontTransform::Rotate180 => 180.0,
            FontTransform::Rotate270 => -90.0,
        };
        Self {
            at: (x + dx, y + dy),
            size,
            bold: is_bold(style),
            colour: style.color(),
            anchor: style.anchor().h_pos,
            degrees,
        }
    }
}

fn is_bold<T: BackendTextStyle>(style: &T) -> bool {
    matches!(style.style(), FontStyle::Bold)
}

/// The space that a text takes in units, measured with the widths of [`Font`].
fn text_size<T: BackendTextStyle>(text: &str, style: &T) -> (u32, u32) {
    let size = style.size() / UNITS;
    let font = if is_bold(style) { Font::bold(size) } else { Font::regular(size) };
    ((font.width(text) * UNITS).ceil() as u32, style.size().ceil() as u32)
}

/// True if a style leaves something to see.
fn is_visible<S: BackendStyle>(style: &S) -> bool {
    style.color().alpha > 0.0
}
