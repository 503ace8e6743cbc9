//! Scatter plots of labelled points.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::element::Circle;
use plotters::style::Color as _;
use proctrace_findings::{Chart, Point, Scatter};

use super::backend::{Drawn, Size, Surface, units};
use super::look::{self, FAINT_INK, LABEL, TICK};
use super::page::Page;
use super::plot::{Plot, Surroundings};
use super::scale::Scale;

const HEIGHT: f64 = 420.0;
const RADIUS_MIN: f64 = 2.5;
const RADIUS_MAX: f64 = 13.0;
/// Maximum number of labels, if they fit.
const LABELS_MAX: usize = 40;
const NAME_MAX: f64 = 150.0;

/// Left, right, top and bottom.
type Box4 = (f64, f64, f64, f64);

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    scatter: &Scatter,
) -> Drawn<Size> {
    let mut page = Page::of(canvas, chart)?;
    let mut points: Vec<&Point> =
        scatter.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()).collect();
    points.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let x = Scale::of(&scatter.x_axis, points.iter().map(|point| point.x), 9);
    let y = Scale::of(&scatter.y_axis, points.iter().map(|point| point.y), 7);
    let mut plot = Plot::new(&mut page, HEIGHT, x, y, &Surroundings::default())?;
    let style = look::series(0, 1).mix(0.5).filled();
    let disc = |point: &&Point| Circle::new((point.x, point.y), units(radius(point)), style);
    plot.chart.draw_series(points.iter().map(disc))?;

    let place = |point: &Point| (plot.x_at(point.x), plot.y_at(point.y), radius(point));
    // A name is placed where it covers neither another name nor one of the larger points.
    let mut taken: Vec<Box4> = points
        .iter()
        .take(400)
        .map(|point| {
            let (x, y, r) = place(point);
            (x - r, x + r, y - r, y + r)
        })
        .collect();
    for point in points.iter().take(LABELS_MAX) {
        let (x, y, r) = place(point);
        let name = TICK.fit_name(&point.name, NAME_MAX);
        let (width, half) = (TICK.width(&name), LABEL.size / 2.0 + 1.0);
        let gap = r + 3.0;
        let spots = [
            (x + gap, y),
            (x - gap - width, y),
            (x - width / 2.0, y - gap - half),
            (x - width / 2.0, y + gap + half),
        ];
        let free = spots.into_iter().find(|(left, middle)| {
            let spot = (*left, left + width, middle - half, middle + half);
            let inside = spot.0 > plot.left + 2.0
                && spot.1 < page.width - 4.0
                && spot.2 > plot.top
                && spot.3 < plot.bottom;
            inside && !taken.iter().any(|other| overlap(*other, spot))
        });
        if let Some((left, middle)) = free {
            page.text(left, middle, &name, TICK.colour(FAINT_INK))?;
            taken.push((left, left + width, middle - half, middle + half));
        }
    }
    page.finish(&chart.notes)
}

fn radius(point: &Point) -> f64 {
    let weight = if point.weight.is_finite() { point.weight.clamp(0.0, 1.0) } else { 0.0 };
    RADIUS_MIN + (RADIUS_MAX - RADIUS_MIN) * weight.sqrt()
}

fn overlap(a: Box4, b: Box4) -> bool {
    a.0 < b.1 && b.0 < a.1 && a.2 < b.3 && b.2 < a.3
}
