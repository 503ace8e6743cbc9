//! Tests of what becomes of plotters' primitives as pixels.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::{BLACK, Color as _};

use super::letters::Letters;
use super::{Bitmap, Way};
use crate::figures::backend::Drawn;
use crate::figures::elements::{Turned, drawn_as};
use crate::figures::extent::Font;

const WIDTH: usize = 100;
const HEIGHT: usize = 60;

/// A picture of a pixel per ten units.
struct Picture(Vec<u8>);

impl Picture {
    fn of(draw: impl FnOnce(&DrawingArea<Bitmap<'_>, Shift>) -> Drawn) -> Self {
        let mut buffer = vec![0xff; WIDTH * HEIGHT * 3];
        let bitmap = Bitmap::new(&mut buffer, (WIDTH as u32, HEIGHT as u32), 1.0).unwrap();
        draw(&DrawingArea::from(&Rc::new(RefCell::new(bitmap)))).unwrap();
        Self(buffer)
    }

    /// Amount of ink on a pixel, from 0 to 1.
    fn ink(&self, x: usize, y: usize) -> f64 {
        1.0 - f64::from(self.0[(y * WIDTH + x) * 3]) / 255.0
    }

    fn all(&self) -> f64 {
        (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))).map(|(x, y)| self.ink(x, y)).sum()
    }

    /// The smallest rectangle around all ink: left, top, right, bottom.
    fn bounds(&self) -> (usize, usize, usize, usize) {
        let mut bounds = (WIDTH, HEIGHT, 0, 0);
        for y in 0..HEIGHT {
            for x in (0..WIDTH).filter(|x| self.ink(*x, y) > 0.02) {
                bounds.0 = bounds.0.min(x);
                bounds.1 = bounds.1.min(y);
                bounds.2 = bounds.2.max(x + 1);
                bounds.3 = bounds.3.max(y + 1);
            }
        }
        bounds
    }
}

fn near(found: f64, expected: f64, slack: f64) {
    assert!((found - expected).abs() <= slack, "{found} instead of {expected}");
}

#[test]
fn a_pixel_takes_as_much_ink_as_it_is_covered() {
    let rectangle =
        Picture::of(|area| area.draw(&Rectangle::new([(105, 200), (300, 225)], BLACK.filled())));
    near(rectangle.ink(10, 20), 0.5, 0.02);
    near(rectangle.ink(11, 20), 1.0, 0.0);
    near(rectangle.ink(29, 21), 1.0, 0.0);
    near(rectangle.ink(29, 22), 0.5, 0.02);
    near(rectangle.ink(10, 22), 0.25, 0.02);
    assert_eq!(rectangle.bounds(), (10, 20, 30, 23));
    // A line of a tenth of a pixel is pale, not absent.
    let thin = Picture::of(|area| {
        area.draw(&PathElement::new([(0, 105), (500, 105)], BLACK.stroke_width(1)))
    });
    near(thin.all(), 50.0 * 0.1, 0.5);
}

#[test]
fn shapes_have_their_areas() {
    let disc = Picture::of(|area| area.draw(&Circle::new((500, 300), 200, BLACK.filled())));
    near(disc.all(), std::f64::consts::PI * 400.0, 8.0);
    assert_eq!(disc.bounds(), (30, 10, 70, 50));
    let ring = Picture::of(|area| area.draw(&Circle::new((500, 300), 200, BLACK.stroke_width(40))));
    near(ring.all(), std::f64::consts::TAU * 20.0 * 4.0, 10.0);
    assert_eq!(ring.ink(50, 30), 0.0);
    let triangle =
        Picture::of(|area| area.draw(&Polygon::new([(0, 0), (400, 0), (400, 400)], BLACK)));
    near(triangle.all(), 800.0, 8.0);
    let diagonal = [(100, 100), (500, 400)];
    let line = Picture::of(|area| area.draw(&PathElement::new(diagonal, BLACK.stroke_width(20))));
    near(line.all(), 50.0 * 2.0, 2.0);
    // A concave outline, as that of steps.
    let corners = [(100, 300), (100, 100), (200, 100), (200, 200), (300, 200), (300, 300)];
    let steps = Picture::of(|area| area.draw(&Polygon::new(corners, BLACK)));
    near(steps.all(), 300.0, 2.0);
    assert_eq!((steps.ink(15, 15), steps.ink(25, 15), steps.ink(25, 25)), (1.0, 0.0, 1.0));
    let outline = Picture::of(|area| {
        area.draw(&Rectangle::new([(100, 100), (300, 300)], BLACK.stroke_width(10)))
    });
    near(outline.all(), 80.0, 4.0);
    let pixel = Picture::of(|area| area.draw_pixel((100, 100), &BLACK));
    near(pixel.all(), 0.01, 0.01);
}

#[test]
fn dashes_leave_gaps_and_colours_mix() {
    let line = || PathElement::new([(0, 105), (800, 105)], BLACK.stroke_width(10));
    let dashes = Picture::of(|area| area.draw(&drawn_as(Way::Dashed, line())));
    near(dashes.all(), 50.0, 1.0);
    assert_eq!((dashes.ink(2, 10), dashes.ink(6, 10), dashes.ink(9, 10)), (1.0, 0.0, 1.0));
    let told = Picture::of(|area| area.draw(&drawn_as(Way::Told("x"), line())));
    near(told.all(), 80.0, 0.0);
    let half = Picture::of(|area| {
        area.draw(&Rectangle::new([(0, 0), (100, 100)], BLACK.mix(0.5).filled()))?;
        area.draw(&Rectangle::new([(0, 0), (100, 100)], BLACK.mix(0.0).filled()))
    });
    near(half.ink(5, 5), 0.5, 0.01);
}

#[test]
fn text_is_where_it_was_measured() {
    for font in [Font::regular(12.0), Font::bold(12.0)] {
        for (style, left) in [(font.into(), 40.0), (font.middle(), 40.0), (font.end(), 90.0)] {
            let style: crate::figures::elements::Style = style;
            let text = "Ágjx…0";
            let picture = Picture::of(|area| {
                area.draw(&Text::new(text, ((left * 10.0) as i32, 300), style.of_plotters()))
            });
            let (from, top, to, bottom) = picture.bounds();
            let width = font.width(text);
            let begin = match style.anchor {
                crate::figures::elements::Anchor::Start => left,
                crate::figures::elements::Anchor::Middle => left - width / 2.0,
                crate::figures::elements::Anchor::End => left - width,
            };
            assert!(
                from as f64 >= begin - 1.0 && to as f64 <= begin + width + 1.0,
                "{from} to {to}"
            );
            assert!((to - from) as f64 > width * 0.7, "{from} to {to} of {width}");
            assert!(top >= 30 - 9 && bottom <= 30 + 9, "{top} to {bottom}");
        }
    }
}

#[test]
fn turned_text_is_the_same_text() {
    let text = |degrees| {
        let style = Font::regular(12.0).into();
        Picture::of(|area| area.draw(&Turned { at: (300, 400), text: "HIHI", style, degrees }))
    };
    let (flat, up, slanted) = (text(0.0), text(-90.0), text(-45.0));
    near(up.all(), flat.all(), 3.0);
    near(slanted.all(), flat.all(), 5.0);
    let (left, top, right, bottom) = flat.bounds();
    let turned = up.bounds();
    assert!((turned.2 - turned.0).abs_diff(bottom - top) <= 1, "{turned:?}");
    assert!((turned.3 - turned.1).abs_diff(right - left) <= 1, "{turned:?}");
}

#[test]
fn places_outside_cost_nothing() {
    let far = 10_000_000;
    let picture = Picture::of(|area| {
        let style = BLACK.stroke_width(20);
        area.draw(&PathElement::new([(0, 0), (far, far), (0, far)], style))?;
        area.draw(&Circle::new((0, 0), 1_000_000, BLACK.filled()))?;
        area.draw(&Polygon::new([(0, 0), (far, 0), (far, far), (0, far)], BLACK))?;
        area.draw(&Text::new("x", (far, far), Font::regular(12.0).middle().of_plotters()))?;
        area.draw(&Rectangle::new([(0, 0), (far, far)], BLACK.filled()))
    });
    near(picture.all(), (WIDTH * HEIGHT) as f64, 0.0);
}

#[test]
fn the_font_has_the_widths_that_text_is_measured_with() {
    let letters = Letters::new().unwrap();
    for c in (' '..='~').chain("·–µ…−×Áé".chars()) {
        let (regular, bold) = letters.widths(c);
        let (regular, bold) = (f64::from(regular) * 1000.0, f64::from(bold) * 1000.0);
        let measured = |font: Font| font.width(&c.to_string());
        if c.is_ascii() {
            near(measured(Font::regular(1000.0)), regular, 1.0);
        }
        assert!(regular <= measured(Font::regular(1000.0)) + 1.0, "{c:?}");
        // The factor for bold letters is that of whole texts.
        assert!(bold < measured(Font::bold(1000.0)) * 1.14, "{c:?}");
    }
}
