//! Histograms: counts by size.

use std::cell::RefCell;
use std::rc::Rc;

use proctrace_findings::{Axis, Chart, Histogram};

use super::backend::{Drawn, Size, Surface};
use super::elements::Block;
use super::look;
use super::page::{Page, Swatch};
use super::plot::{Plot, Surroundings};
use super::scale::Scale;

const HEIGHT: f64 = 320.0;
/// Space between two bars.
const BETWEEN: f64 = 0.8;

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    histogram: &Histogram,
) -> Drawn<Size> {
    let mut page = Page::of(canvas, chart)?;
    let many = histogram.series.len();
    if many > 1 {
        let entries = histogram.series.iter().enumerate();
        let entries: Vec<_> = entries
            .map(|(at, series)| {
                (Swatch::Area(look::series_named(&series.name, at, many)), series.name.clone())
            })
            .collect();
        page.legend(&entries)?;
    }
    let bins = histogram.edges.len().saturating_sub(1);
    let mut tops = vec![vec![0.0; bins]];
    for series in &histogram.series {
        let value = |bin: usize| {
            series.values.get(bin).copied().flatten().filter(|v| v.is_finite()).unwrap_or(0.0)
        };
        let below = tops[tops.len() - 1].iter().enumerate();
        tops.push(below.map(|(bin, below)| below + value(bin).max(0.0)).collect());
    }
    // Stacked lengths cannot be added on a log axis.
    let logarithmic = histogram.count_axis.logarithmic && many < 2;
    let count_axis = Axis { logarithmic, ..histogram.count_axis.clone() };
    let y = Scale::of(&count_axis, tops[many].iter().copied(), 6).with_foot();
    let edges = histogram.edges.iter().copied().filter(|edge| edge.is_finite());
    let (low, high) =
        edges.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), edge| {
            (low.min(edge), high.max(edge))
        });
    let marks = histogram.marks.iter().map(|mark| mark.at).filter(|at| at.is_finite());
    let high = marks.fold(high, f64::max);
    let x = Scale::of(&histogram.axis, edges, 12).between(low, high * 1.05);
    let around = Surroundings { moments: &histogram.marks, ..Surroundings::default() };
    let mut plot = Plot::new(&mut page, HEIGHT, x, y, &around)?;
    for (at, levels) in tops.windows(2).enumerate() {
        let colour = look::series_named(&histogram.series[at].name, at, many);
        let bars = levels[0].iter().copied().zip(levels[1].iter().copied());
        let bars = bars.zip(histogram.edges.windows(2)).filter(|((below, top), _)| top > below);
        let bars: Vec<_> = bars
            .map(|((below, top), edges)| {
                // A thin gap between adjacent bars that never hides a bar.
                let width = plot.x_at(edges[1]) - plot.x_at(edges[0]);
                Block {
                    corners: [(edges[0], below), (edges[1], top)],
                    colour,
                    inset: [0.0, 0.0, BETWEEN.min(width / 2.0).max(0.0), 0.0],
                    least: (0.0, 0.8),
                }
            })
            .collect();
        plot.chart.draw_series(bars)?;
    }
    plot.draw_moments(&histogram.marks)?;
    page.finish(&chart.notes)
}
