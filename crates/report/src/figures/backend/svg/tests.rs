//! Tests of what becomes of plotters' primitives, and of text from outside.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    BLACK, BLUE, Color as _, FontDesc, FontFamily, FontStyle, FontTransform, RED, TRANSPARENT,
    TextStyle,
};
use roxmltree::Document;

use super::{Size, Svg, Way};
use crate::figures::elements::drawn_as;

/// The elements between the paper and the end of a picture, each on its line.
fn drawn(draw: impl FnOnce(&DrawingArea<Svg, Shift>) -> super::super::Drawn) -> Vec<String> {
    let canvas = Rc::new(RefCell::new(Svg::default()));
    draw(&DrawingArea::from(&canvas)).unwrap();
    let document = canvas.take().document(Size { width: 50.0, height: 30.0 }, "title");
    Document::parse(&document).unwrap();
    let lines: Vec<&str> = document.lines().collect();
    assert_eq!(
        lines[0],
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"50\" height=\"30\" \
         viewBox=\"0 0 500 300\" font-family=\"sans-serif\" role=\"img\">"
    );
    assert_eq!(
        lines[1..3],
        ["<title>title</title>", "<rect width=\"500\" height=\"300\" fill=\"#ffffff\"/>"]
    );
    lines[3..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn every_primitive_is_drawn() {
    let found = drawn(|area| {
        area.draw_pixel((3, 4), &BLACK)?;
        area.draw(&PathElement::new([(0, 0), (10, 0), (20, 30)], BLUE.stroke_width(12)))?;
        area.draw(&Rectangle::new([(30, 20), (10, 5)], RED.filled()))?;
        area.draw(&Rectangle::new([(10, 5), (30, 20)], RED.stroke_width(3)))?;
        area.draw(&Circle::new((7, 8), 9, RED.filled()))?;
        area.draw(&Circle::new((7, 8), 9, RED.stroke_width(16)))?;
        area.draw(&Polygon::new([(0, 0), (4, 0), (4, 4)], BLUE.mix(0.5)))
    });
    let stroke = "fill=\"none\" stroke=";
    assert_eq!(
        found,
        [
            "<path d=\"m3 4h1v1h-1z\" fill=\"#000000\"/>".to_owned(),
            format!("<path d=\"m0 0h10l10 30\" {stroke}\"#0000ff\" stroke-width=\"12\"/>"),
            "<path d=\"m10 5h20v15h-20z\" fill=\"#ff0000\"/>".to_owned(),
            format!("<path d=\"m10 5h20v15h-20z\" {stroke}\"#ff0000\" stroke-width=\"3\"/>"),
            "<circle cx=\"7\" cy=\"8\" r=\"9\" fill=\"#ff0000\"/>".to_owned(),
            format!("<circle cx=\"7\" cy=\"8\" r=\"9\" {stroke}\"#ff0000\" stroke-width=\"16\"/>"),
            "<path d=\"m0 0h4v4z\" fill=\"#0000ff\" fill-opacity=\"0.5\"/>".to_owned(),
        ]
    );
}

#[test]
fn shapes_of_one_style_are_one_path() {
    let found = drawn(|area| {
        for x in [0, 10, 20] {
            area.draw(&Rectangle::new([(x, 0), (x + 5, 5)], RED.filled()))?;
        }
        // Overlaps of translucent shapes are to be seen.
        for x in [0, 1] {
            area.draw(&Rectangle::new([(x, 0), (x + 5, 5)], RED.mix(0.5).filled()))?;
        }
        for x in [0, 1] {
            let line = PathElement::new([(x, 0), (x, 5)], RED.stroke_width(x as u32 + 1));
            area.draw(&line)?;
        }
        Ok(())
    });
    assert_eq!(found[0], "<path d=\"m0 0h5v5h-5zm10 0h5v5h-5zm10 0h5v5h-5z\" fill=\"#ff0000\"/>");
    assert_eq!(found.len(), 1 + 2 + 2, "{found:?}");
}

#[test]
fn tooltips_and_dashes_are_of_their_shapes_only() {
    let found = drawn(|area| {
        let line = || PathElement::new([(0, 0), (0, 5)], RED.stroke_width(1));
        let told = Way::Told("a < b");
        area.draw(&drawn_as(told, Rectangle::new([(1, 2), (3, 5)], RED.filled())))?;
        area.draw(&drawn_as(told, Circle::new((1, 2), 3, RED.filled())))?;
        area.draw(&drawn_as(told, line()))?;
        area.draw(&drawn_as(Way::Dashed, line()))?;
        area.draw(&line())
    });
    let tip = "><title>a &lt; b</title>";
    let line = "<path d=\"m0 0v5\" fill=\"none\" stroke=\"#ff0000\" stroke-width=\"1\"";
    assert_eq!(
        found,
        [
            format!("<rect x=\"1\" y=\"2\" width=\"2\" height=\"3\" fill=\"#ff0000\"{tip}</rect>"),
            format!("<circle cx=\"1\" cy=\"2\" r=\"3\" fill=\"#ff0000\"{tip}</circle>"),
            format!("{line}{tip}</path>"),
            format!("{line} stroke-dasharray=\"50 30\"/>"),
            format!("{line}/>"),
        ]
    );
}

fn style(transform: FontTransform, h_pos: HPos, v_pos: VPos) -> TextStyle<'static> {
    let font = FontDesc::new(FontFamily::SansSerif, 100.0, FontStyle::Bold).transform(transform);
    TextStyle { font, color: RED.to_backend_color(), pos: Pos::new(h_pos, v_pos) }
}

#[test]
fn text_is_placed_by_its_anchor() {
    let found = drawn(|area| {
        for (transform, h_pos, v_pos) in [
            (FontTransform::None, HPos::Left, VPos::Center),
            (FontTransform::None, HPos::Right, VPos::Top),
            (FontTransform::Rotate270, HPos::Center, VPos::Top),
            (FontTransform::Rotate90, HPos::Center, VPos::Bottom),
        ] {
            area.draw(&Text::new("x", (200, 100), style(transform, h_pos, v_pos)))?;
        }
        area.draw(&Text::new("", (0, 0), style(FontTransform::None, HPos::Left, VPos::Top)))
    });
    let text = |place: &str, rest: &str| {
        format!("<text {place} font-size=\"100\" fill=\"#ff0000\"{rest}>x</text>")
    };
    let (middle, bold) = (" text-anchor=\"middle\"", " font-weight=\"bold\"");
    assert_eq!(
        found,
        [
            text("x=\"200\" y=\"136\"", bold),
            text("x=\"200\" y=\"190\"", &format!(" text-anchor=\"end\"{bold}")),
            text(
                "x=\"290\" y=\"100\"",
                &format!("{middle}{bold} transform=\"rotate(-90 290 100)\"")
            ),
            text(
                "x=\"230\" y=\"100\"",
                &format!("{middle}{bold} transform=\"rotate(90 230 100)\"")
            ),
        ]
    );
    let area = Rc::new(RefCell::new(Svg::default()));
    let style = style(FontTransform::None, HPos::Left, VPos::Top);
    let size = DrawingArea::from(&area).estimate_text_size("proctrace", &style).unwrap();
    let width = crate::figures::extent::Font::bold(10.0).width("proctrace");
    assert_eq!(size, ((width * 10.0).ceil() as u32, 100));
}

#[test]
fn what_cannot_be_seen_is_left_out() {
    assert!(
        drawn(|area| {
            area.draw(&Rectangle::new([(1, 2), (3, 5)], TRANSPARENT.filled()))?;
            area.draw(&Circle::new((1, 2), 3, TRANSPARENT.filled()))?;
            area.draw(&Polygon::new([(0, 0), (4, 0), (4, 4)], TRANSPARENT))?;
            area.draw(&PathElement::new(vec![], RED.stroke_width(1)))?;
            area.draw(&PathElement::new([(0, 0), (0, 5)], TRANSPARENT.stroke_width(1)))
        })
        .is_empty()
    );
}

#[test]
fn text_cannot_become_markup() {
    let hostile = "</text><script>&\u{1b}\"";
    let found = drawn(|area| {
        let style = style(FontTransform::None, HPos::Left, VPos::Top);
        area.draw(&Text::new(hostile, (0, 0), style))?;
        let shape = Rectangle::new([(1, 2), (3, 5)], RED.filled());
        area.draw(&drawn_as(Way::Told(hostile), shape))
    });
    for line in found {
        assert!(line.contains(">&lt;/text&gt;&lt;script&gt;&amp;\\u{1b}\"</"), "{line}");
    }
    let document = Svg::default().document(Size { width: 1.0, height: 1.0 }, hostile);
    assert!(document.contains("<title>&lt;/text&gt;&lt;script&gt;"), "{document}");
}
