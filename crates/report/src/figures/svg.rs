//! SVG elements as text. All untrusted strings pass through here and are escaped here.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::extent::Font;
use super::look::{INK, PAPER};
use crate::escape::xml;

/// A picture under construction. Coordinates are in pixels, from the upper left corner.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
}

/// The alignment of a text relative to its anchor point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) font: Font,
    pub(crate) anchor: Anchor,
    pub(crate) colour: &'static str,
    /// Rotation about the anchor point, in degrees clockwise.
    pub(crate) turned: f64,
}

impl From<Font> for Style {
    fn from(font: Font) -> Self {
        Self { font, anchor: Anchor::Start, colour: INK, turned: 0.0 }
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
    pub(crate) fn colour(self, colour: &'static str) -> Style {
        Style { colour, ..self.into() }
    }
}

impl Style {
    pub(crate) fn colour(self, colour: &'static str) -> Self {
        Self { colour, ..self }
    }

    pub(crate) fn turned(self, degrees: f64) -> Self {
        Self { turned: degrees, ..self }
    }
}

/// The style of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pen {
    pub(crate) colour: &'static str,
    pub(crate) width: f64,
    pub(crate) dashed: bool,
}

impl Pen {
    pub(crate) const fn of(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dashed: false }
    }

    pub(crate) const fn dashed(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dashed: true }
    }

    fn attributes(self) -> String {
        let dashes = if self.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        format!("stroke=\"{}\" stroke-width=\"{}\"{dashes}", self.colour, px(self.width))
    }
}

impl Svg {
    /// Text whose baseline is a third of its height below `y`, which centres it vertically in a row
    /// at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str, style: impl Into<Style>) {
        let style = style.into();
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if style.font.bold { " font-weight=\"bold\"" } else { "" };
        let (x, base) =
            (px(x), px(y + if style.turned == 0.0 { style.font.size * 0.36 } else { 0.0 }));
        let turned = if style.turned == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {x} {base})\"", px(style.turned))
        };
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{base}\" font-size=\"{}\" fill=\"{}\"{anchor}{weight}{turned}>{}</text>",
            px(style.font.size),
            style.colour,
            markup(text)
        );
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let _ = writeln!(self.out, "{}/>", rect(x, y, width, height, fill));
    }

    /// A rectangle with a tooltip.
    pub(crate) fn told_rect(
        &mut self,
        (x, y, width, height): (f64, f64, f64, f64),
        fill: &str,
        what: &str,
    ) {
        let rect = rect(x, y, width, height, fill);
        let _ = writeln!(self.out, "{rect}><title>{}</title></rect>", markup(what));
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), pen: Pen) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>",
            px(x1),
            px(y1),
            px(x2),
            px(y2),
            pen.attributes()
        );
    }

    /// A disc with a tooltip.
    pub(crate) fn dot(
        &mut self,
        (x, y): (f64, f64),
        radius: f64,
        fill: &str,
        pen: Pen,
        what: &str,
    ) {
        let _ = writeln!(
            self.out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\" {}><title>{}</title></circle>",
            px(x),
            px(y),
            px(radius),
            pen.attributes(),
            markup(what)
        );
    }

    /// Strokes a path.
    pub(crate) fn stroke(&mut self, path: &str, pen: Pen) {
        if !path.is_empty() {
            let _ = writeln!(self.out, "<path d=\"{path}\" fill=\"none\" {}/>", pen.attributes());
        }
    }

    /// Fills a path.
    pub(crate) fn fill(&mut self, path: &str, fill: &str, opacity: f64) {
        if !path.is_empty() {
            let opacity = opacity_attribute(opacity);
            let _ = writeln!(self.out, "<path d=\"{path}\" fill=\"{fill}\"{opacity}/>");
        }
    }

    /// The complete document.
    pub(crate) fn document(self, width: f64, height: f64, title: &str) -> String {
        let (width, height) = (width.ceil(), height.ceil());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            markup(title),
            self.out
        )
    }
}

fn rect(x: f64, y: f64, width: f64, height: f64, fill: &str) -> String {
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"",
        px(x),
        px(y),
        px(width.max(0.0)),
        px(height.max(0.0)),
    )
}

fn opacity_attribute(opacity: f64) -> String {
    if opacity < 1.0 { format!(" fill-opacity=\"{}\"", px(opacity)) } else { String::new() }
}

/// A length or position, rounded to a hundredth of a pixel.
pub(crate) fn px(value: f64) -> String {
    // A non-finite coordinate would invalidate the whole picture.
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let mut text = format!("{value:.2}");
    let kept = text.trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(kept);
    if text == "-0" { "0".to_owned() } else { text }
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
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_numbers() {
        assert_eq!(px(1.0), "1");
        assert_eq!(px(1.239), "1.24");
        assert_eq!(px(10.5), "10.5");
        assert_eq!(px(-0.001), "0");
        assert_eq!(px(f64::NAN), "0");
        assert_eq!(px(f64::INFINITY), "0");
        assert_eq!(px(1e300), "1000000");
    }

    #[test]
    fn text_cannot_become_markup() {
        let mut svg = Svg::default();
        svg.text(0.0, 0.0, "</text><script>&\u{1b}", Font::regular(10.0));
        let document = svg.document(10.0, 10.0, "a < b");
        assert!(document.contains("&lt;/text&gt;&lt;script&gt;&amp;\\u{1b}"), "{document}");
        assert!(document.contains("<title>a &lt; b</title>"));
    }
}
