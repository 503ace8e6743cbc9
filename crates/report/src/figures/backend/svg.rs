//! A backend of plotters that writes SVG. All untrusted strings of figures pass through here and
//! are escaped here.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::style::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::path::PathData;
use super::{DASHES, ENDLESS, Lettering, Size, Surface, Way, is_visible, text_size, units};
use crate::escape::xml;

type Done = Result<(), DrawingErrorKind<Infallible>>;

/// A picture under construction. Coordinates are units under a viewBox, so that positions are
/// exact without decimals.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
    /// Shapes of the same style that follow each other become one path.
    path: Option<(Ink, PathData)>,
    tooltip: Option<String>,
    dashed: bool,
    joined: bool,
}

/// Way in which a path is painted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ink {
    Fill { rgb: (u8, u8, u8), alpha: f64 },
    Stroke { rgb: (u8, u8, u8), alpha: f64, width: u32, dashed: bool },
}

impl Ink {
    fn fill<S: BackendStyle>(style: &S) -> Self {
        let BackendColor { alpha, rgb } = style.color();
        Self::Fill { rgb, alpha }
    }

    fn is_opaque(self) -> bool {
        let (Self::Fill { alpha, .. } | Self::Stroke { alpha, .. }) = self;
        alpha >= 1.0
    }

    fn attributes(self) -> String {
        match self {
            Self::Fill { rgb, alpha } => {
                format!("fill=\"{}\"{}", hex(rgb), opacity("fill-opacity", alpha))
            }
            Self::Stroke { rgb, alpha, width, dashed } => {
                let [dash, gap] = DASHES;
                let dashes = match dashed {
                    true => format!(" stroke-dasharray=\"{dash} {gap}\""),
                    false => String::new(),
                };
                let opacity = opacity("stroke-opacity", alpha);
                format!(
                    "fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{opacity}{dashes}",
                    hex(rgb)
                )
            }
        }
    }
}

impl Svg {
    /// The complete document.
    pub(crate) fn document(mut self, size: Size, title: &str) -> String {
        self.flush(None);
        let (width, height) = (size.width.ceil(), size.height.ceil());
        let (right, bottom) = (units(width), units(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {right} {bottom}\" font-family=\"sans-serif\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect width=\"{right}\" height=\"{bottom}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            markup(title),
            self.out
        )
    }

    fn stroke<S: BackendStyle>(&self, style: &S) -> Ink {
        let BackendColor { alpha, rgb } = style.color();
        Ink::Stroke { rgb, alpha, width: style.stroke_width(), dashed: self.dashed }
    }

    /// Adds a shape to the path, or begins a new one.
    fn shape(&mut self, ink: Ink, draw: impl FnOnce(&mut PathData)) {
        // Translucent shapes must stay visible where they overlap.
        let joins = self.tooltip.is_none() && (self.joined || ink.is_opaque());
        if !(joins && self.path.as_ref().is_some_and(|(open, _)| *open == ink)) {
            self.flush(None);
        }
        let (_, data) = self.path.get_or_insert_with(|| (ink, PathData::default()));
        draw(data);
        if let Some(tooltip) = self.tooltip.take() {
            self.flush(Some(&tooltip));
            self.tooltip = Some(tooltip);
        }
    }

    /// Writes the path, if there is one.
    fn flush(&mut self, tooltip: Option<&str>) {
        if let Some((ink, path)) = self.path.take() {
            let what = format!("<path d=\"{}\" {}", path.as_str(), ink.attributes());
            self.element("path", &what, tooltip);
        }
    }

    /// Writes an element of which everything but its end is given.
    fn element(&mut self, name: &str, begin: &str, tooltip: Option<&str>) {
        // Writing to a String cannot fail, here and below.
        let _ = match tooltip {
            Some(tooltip) => {
                writeln!(self.out, "{begin}><title>{}</title></{name}>", markup(tooltip))
            }
            None => writeln!(self.out, "{begin}/>"),
        };
    }
}

impl Surface for Svg {
    fn draw_as<R>(&mut self, way: Way<'_>, draw: impl FnOnce(&mut Self) -> R) -> R {
        match way {
            Way::Told(what) => {
                let before = self.tooltip.replace(what.to_owned());
                let result = draw(self);
                self.tooltip = before;
                result
            }
            Way::Dashed => {
                let before = std::mem::replace(&mut self.dashed, true);
                let result = draw(self);
                self.dashed = before;
                result
            }
            Way::Joined => {
                self.flush(None);
                let before = std::mem::replace(&mut self.joined, true);
                let result = draw(self);
                self.flush(None);
                self.joined = before;
                result
            }
        }
    }

    fn draw_lettering(&mut self, text: &str, lettering: &Lettering) {
        if text.is_empty() || lettering.colour.alpha <= 0.0 {
            return;
        }
        self.flush(None);
        let Lettering { at: (x, y), size, bold, colour, anchor, degrees } = *lettering;
        let anchor = match anchor {
            HPos::Left => "",
            HPos::Center => " text-anchor=\"middle\"",
            HPos::Right => " text-anchor=\"end\"",
        };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let turned = if degrees == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({degrees} {x} {y})\"")
        };
        let fill = format!("fill=\"{}\"{}", hex(colour.rgb), opacity("fill-opacity", colour.alpha));
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" {fill}{anchor}{weight}{turned}>{}</text>",
            markup(text)
        );
    }
}

impl DrawingBackend for Svg {
    type ErrorType = Infallible;

    parts_of_all_backends!();

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Done {
        if !is_visible(style) {
            return Ok(());
        }
        let (left, right) = (x.min(right), x.max(right));
        let (top, bottom) = (y.min(bottom), y.max(bottom));
        if let Some(tooltip) = self.tooltip.clone().filter(|_| fill) {
            self.flush(None);
            let begin = format!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" {}",
                right - left,
                bottom - top,
                Ink::fill(style).attributes()
            );
            self.element("rect", &begin, Some(&tooltip));
            return Ok(());
        }
        let ink = if fill { Ink::fill(style) } else { self.stroke(style) };
        self.shape(ink, |path| {
            path.move_to((left, top));
            for corner in [(right, top), (right, bottom), (left, bottom)] {
                path.line_to(corner);
            }
            path.close();
        });
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Done {
        let mut points = points.into_iter();
        let Some(first) = points.next().filter(|_| is_visible(style)) else { return Ok(()) };
        self.shape(self.stroke(style), |path| {
            path.move_to(first);
            points.for_each(|point| path.line_to(point));
        });
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Done {
        if is_visible(style) {
            self.flush(None);
            let ink = if fill { Ink::fill(style) } else { self.stroke(style) };
            let begin =
                format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {}", ink.attributes());
            let tooltip = self.tooltip.clone();
            self.element("circle", &begin, tooltip.as_deref());
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Done {
        let mut corners = corners.into_iter();
        let Some(first) = corners.next().filter(|_| is_visible(style)) else { return Ok(()) };
        self.shape(Ink::fill(style), |path| {
            path.move_to(first);
            corners.for_each(|corner| path.line_to(corner));
            path.close();
        });
        Ok(())
    }
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn opacity(name: &str, alpha: f64) -> String {
    if alpha < 1.0 {
        format!(" {name}=\"{}\"", (alpha * 100.0).round() / 100.0)
    } else {
        String::new()
    }
}

/// Text between tags.
fn markup(text: &str) -> Cow<'_, str> {
    let text = xml(text);
    if !text.contains(['&', '<', '>']) {
        return text;
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into()
}

#[cfg(test)]
mod tests;
