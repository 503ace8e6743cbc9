//! Figures: one file per kind, in a common style. Each is drawn on a backend of plotters, charts
//! with axes as charts of plotters.

mod backend;
mod bars;
mod coordinates;
mod elements;
pub mod extent;
mod flame;
mod gantt;
mod heat_map;
mod histogram;
mod intervals;
mod lines;
mod look;
mod page;
mod plot;
mod png;
mod row_plot;
mod scale;
mod scatter;
mod waterfall;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use proctrace_findings::{Chart, ChartBody, Gantt};

pub use self::backend::PngError;
use self::backend::svg::Svg;
use self::backend::{Drawn, Size, Surface};
use self::png::Figure;

/// The colours of categories, which are the same in every figure, as `#rrggbb`.
pub fn category_colours(names: &[&str]) -> Vec<String> {
    let hex = |colour: look::Colour| format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2);
    look::categories(names).into_iter().map(hex).collect()
}

/// A figure as SVG.
pub fn chart_svg(chart: &Chart) -> String {
    let title = match &chart.body {
        ChartBody::Gantt(gantt) => gantt::title(gantt),
        _ => &chart.title,
    };
    svg_of(chart, title)
}

/// The lifetime of every process as SVG.
pub fn gantt_svg(gantt: &Gantt) -> String {
    svg_of(gantt, gantt::title(gantt))
}

/// The format of a file with a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    /// Exact at any size, with tooltips.
    Svg,
    /// Format for programs that cannot read SVG.
    Png,
}

impl PictureFormat {
    /// The format that the name of a file asks for: SVG if it has no extension, and `None` for another one.
    pub fn of(path: &Path) -> Option<Self> {
        let Some(end) = path.extension() else { return Some(Self::Svg) };
        let is = |name: &str| end.eq_ignore_ascii_case(name);
        [(Self::Svg, "svg"), (Self::Png, "png")]
            .into_iter()
            .find_map(|(format, name)| is(name).then_some(format))
    }

    /// The contents of a file with this figure.
    pub fn chart(self, chart: &Chart) -> Result<Vec<u8>, PngError> {
        match self {
            Self::Svg => Ok(chart_svg(chart).into_bytes()),
            Self::Png => png::of(chart),
        }
    }

    /// The contents of a file with the lifetime of every process.
    pub fn gantt(self, gantt: &Gantt) -> Result<Vec<u8>, PngError> {
        match self {
            Self::Svg => Ok(gantt_svg(gantt).into_bytes()),
            Self::Png => png::of(gantt),
        }
    }
}

impl Figure for Chart {
    fn draw<S: Surface>(&self, canvas: &Rc<RefCell<S>>) -> Drawn<Size> {
        match &self.body {
            ChartBody::Bars(bars) => bars::draw(canvas, self, bars),
            ChartBody::Lines(lines) => lines::draw(canvas, self, lines),
            ChartBody::Histogram(histogram) => histogram::draw(canvas, self, histogram),
            ChartBody::HeatMap(map) => heat_map::draw(canvas, self, map),
            ChartBody::Scatter(scatter) => scatter::draw(canvas, self, scatter),
            ChartBody::Gantt(gantt) => gantt::draw(canvas, gantt, &self.notes),
            ChartBody::Flame(flame) => flame::draw(canvas, self, flame),
            ChartBody::Intervals(intervals) => intervals::draw(canvas, self, intervals),
            ChartBody::Waterfall(waterfall) => waterfall::draw(canvas, self, waterfall),
        }
    }
}

impl Figure for Gantt {
    fn draw<S: Surface>(&self, canvas: &Rc<RefCell<S>>) -> Drawn<Size> {
        gantt::draw(canvas, self, &[])
    }
}

fn svg_of(figure: &impl Figure, title: &str) -> String {
    let canvas = Rc::new(RefCell::new(Svg::default()));
    match figure.draw(&canvas) {
        Ok(size) => canvas.take().document(size, title),
        // Nothing that figures do lets plotters fail. An error is shown where the figure would be.
        Err(error) => {
            let size = Size { width: look::WIDTH, height: 0.0 };
            Svg::default().document(size, &format!("{title}: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_decides_its_format() {
        for (name, format) in [
            ("job.svg", Some(PictureFormat::Svg)),
            ("job.png", Some(PictureFormat::Png)),
            ("dir.png/JOB.PNG", Some(PictureFormat::Png)),
            ("dir.png/job", Some(PictureFormat::Svg)),
            ("png", Some(PictureFormat::Svg)),
            ("/dev/stdout", Some(PictureFormat::Svg)),
            ("job.jpg", None),
        ] {
            assert_eq!(PictureFormat::of(Path::new(name)), format, "{name}");
        }
    }
}
