//! The Gantt chart: every process as a bar, with strips of CPU and forks above on the same axis.
//!
//! plotters draws the axes, the strips and the legend. The bars are ours: one path per kind with
//! a short segment per process, 20 bytes each instead of the 100 of a rectangle, so that 70,000
//! processes make a file that a browser opens. None is left out, and none is drawn narrower or
//! thinner than can be seen.

use std::fmt::Write as _;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use proctrace_findings::{Bar, Gantt};

use crate::escape::xml;
use crate::layout::Layout;
use crate::number::{count, counted, time};
use crate::table::shorten;

/// What plotters can say.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the chart: {0}")]
pub struct GanttError(String);

impl GanttError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

const WIDTH: u32 = 1400;
const LEGEND_WIDTH: u32 = 250;
const TITLE_HEIGHT: u32 = 50;
const STRIP_HEIGHT: u32 = 130;
const MARGIN_LEFT: u32 = 60;
const MARGIN_RIGHT: u32 = 20;
const MARGIN_TOP: u32 = 8;
const TIME_AXIS: u32 = 45;

/// No bar is shorter or thinner than this, in pixels.
const BAR_MIN: f64 = 0.8;

/// Paul Tol's muted scheme, which colour-blind people can tell apart. Lanes beyond take them again:
/// their labels tell which is which.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0xcc, 0x66, 0x77),
    RGBColor(0x44, 0xaa, 0x99),
    RGBColor(0xdd, 0xcc, 0x77),
    RGBColor(0x88, 0xcc, 0xee),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x11, 0x77, 0x33),
    RGBColor(0xaa, 0x44, 0x99),
    RGBColor(0x99, 0x99, 0x33),
];
const USER: RGBColor = RGBColor(0x44, 0xaa, 0x99);
const SYSTEM: RGBColor = RGBColor(0xcc, 0x66, 0x77);
const FORKS: RGBColor = RGBColor(0x33, 0x22, 0x88);

/// The chart as SVG.
///
/// # Errors
/// When plotters refuses, which would be a fault of ours.
pub fn gantt_svg(gantt: &Gantt) -> Result<String, GanttError> {
    let layout = Layout::of(gantt);
    let height =
        TITLE_HEIGHT + 2 * STRIP_HEIGHT + MARGIN_TOP + layout.height.ceil() as u32 + TIME_AXIS;
    let mut svg = String::new();
    let mut area = (0..0, 0..0);
    draw_frame(gantt, &layout, (WIDTH, height), &mut svg, &mut area)
        .map_err(|error| GanttError(error.to_string()))?;
    let bars = draw_bars(gantt, &layout, area);
    let end = svg.rfind("</svg>").ok_or_else(|| GanttError("no end of the file".into()))?;
    svg.insert_str(end, &bars);
    Ok(svg)
}

type PixelArea = (std::ops::Range<i32>, std::ops::Range<i32>);
type BoxError = Box<dyn std::error::Error>;

/// Everything but the bars; `area` becomes where these go.
fn draw_frame(
    gantt: &Gantt,
    layout: &Layout,
    size: (u32, u32),
    svg: &mut String,
    area: &mut PixelArea,
) -> Result<(), BoxError> {
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE_HEIGHT);
    let title_text = format!(
        "{} · {} · {}",
        // a command says most at its beginning
        clip(&xml(&gantt.title), 90),
        counted(gantt.bars.len() as u64, "process", "processes"),
        time(gantt.wall_ns)
    );
    title.draw_text(&title_text, &("sans-serif", 20).into_text_style(&title), (20, 16))?;
    let (charts, legend) = rest.split_horizontally(WIDTH - LEGEND_WIDTH);
    let (cpu, below) = charts.split_vertically(STRIP_HEIGHT);
    let (forks, bars) = below.split_vertically(STRIP_HEIGHT);
    draw_cpu(gantt, &cpu)?;
    draw_forks(gantt, &forks)?;
    *area = draw_axes(gantt, &bars)?;
    draw_legend(gantt, layout, &legend)?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn seconds(ns: u64) -> f64 {
    // An axis needs a length.
    (ns as f64 / 1e9).max(1e-6)
}

/// A strip's values as a step at each bin, from the axis up.
fn steps(values: &[f64], bin_s: f64, end_s: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(values.len() * 2);
    for (bin, value) in values.iter().enumerate() {
        let begin = (bin as f64 * bin_s).min(end_s);
        points.push((begin, *value));
        points.push(((begin + bin_s).min(end_s), *value));
    }
    points
}

fn draw_cpu(gantt: &Gantt, area: &Area<'_>) -> Result<(), BoxError> {
    let end = seconds(gantt.wall_ns);
    let bin = gantt.bin_ns as f64 / 1e9;
    let total: Vec<f64> =
        gantt.user_cores.iter().zip(&gantt.system_cores).map(|(u, s)| u + s).collect();
    let cores = f64::from(gantt.cores);
    let top = total.iter().copied().fold(cores, f64::max) * 1.08;
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN_TOP)
        .margin_left(14)
        .margin_right(MARGIN_RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, MARGIN_LEFT)
        .set_label_area_size(LabelAreaPosition::Bottom, 10)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(4)
        .y_desc("CPUs busy")
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .draw()?;
    chart.draw_series(AreaSeries::new(steps(&total, bin, end), 0.0, SYSTEM.filled()))?;
    chart.draw_series(AreaSeries::new(steps(&gantt.user_cores, bin, end), 0.0, USER.filled()))?;
    chart.draw_series(LineSeries::new([(0.0, cores), (end, cores)], BLACK.mix(0.6)))?;
    Ok(())
}

fn draw_forks(gantt: &Gantt, area: &Area<'_>) -> Result<(), BoxError> {
    let end = seconds(gantt.wall_ns);
    let bin = gantt.bin_ns as f64 / 1e9;
    let top = gantt.forks_per_second.iter().copied().fold(1.0, f64::max) * 1.08;
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN_TOP)
        .margin_left(14)
        .margin_right(MARGIN_RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, MARGIN_LEFT)
        .set_label_area_size(LabelAreaPosition::Bottom, 10)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(4)
        .y_label_formatter(&|forks| count(*forks as u64))
        .y_desc("forks per s")
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let points = steps(&gantt.forks_per_second, bin, end);
    chart.draw_series(AreaSeries::new(points, 0.0, FORKS.mix(0.7).filled()))?;
    Ok(())
}

fn draw_axes(gantt: &Gantt, area: &Area<'_>) -> Result<PixelArea, BoxError> {
    let end = seconds(gantt.wall_ns);
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN_TOP)
        .margin_left(14)
        .margin_right(MARGIN_RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, MARGIN_LEFT)
        .set_label_area_size(LabelAreaPosition::Bottom, TIME_AXIS)
        .build_cartesian_2d(0.0..end, 0.0..1.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .y_desc(if gantt.bars.len() > 1 { "processes" } else { "" })
        .x_labels(10)
        .x_label_formatter(&|s| time_tick(*s, end))
        .x_desc("time since the start")
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    Ok(chart.plotting_area().get_pixel_range())
}

/// A tick of an axis of this length, in the unit that suits it.
fn time_tick(s: f64, end_s: f64) -> String {
    if end_s < 0.1 {
        format!("{:.1} ms", s * 1e3)
    } else if end_s < 20.0 {
        format!("{s:.1} s")
    } else if end_s < 600.0 {
        format!("{s:.0} s")
    } else {
        format!("{:.0} min", s / 60.0)
    }
}

/// What the colours of the strips mean, and beside each band what is in it.
fn draw_legend(gantt: &Gantt, layout: &Layout, area: &Area<'_>) -> Result<(), BoxError> {
    let text = ("sans-serif", 13).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    let entry = |y: i32, colour: RGBColor, label: &str| -> Result<(), BoxError> {
        area.draw(&Rectangle::new([(10, y - 5), (24, y + 5)], colour.filled()))?;
        area.draw_text(label, &text, (32, y))?;
        Ok(())
    };
    entry(20, USER, "CPU in user mode")?;
    entry(40, SYSTEM, "CPU in the kernel")?;
    let cores = counted(u64::from(gantt.cores), "core", "cores");
    area.draw_text(&format!("line: {cores}"), &text, (32, 60))?;
    entry(STRIP_HEIGHT as i32 + 20, FORKS, "threads included")?;
    let top = f64::from(2 * STRIP_HEIGHT + MARGIN_TOP);
    for (at, (lane, (begin, end))) in gantt.lanes.iter().zip(&layout.bands).enumerate() {
        let y = top + (begin + end) / 2.0;
        let label = format!("{} {}", count(lane.processes), shorten(&xml(&lane.name), 24));
        entry(y as i32, COLOURS[at % COLOURS.len()], &label)?;
    }
    Ok(())
}

/// One path per lane; names, where there is room.
fn draw_bars(gantt: &Gantt, layout: &Layout, area: PixelArea) -> String {
    let (x_range, y_range) = area;
    let (left, width) = (f64::from(x_range.start), f64::from(x_range.end - x_range.start));
    let top = f64::from(y_range.start);
    let thickness = layout.thickness.max(BAR_MIN);
    let axis_ns = (gantt.wall_ns as f64).max(1.0);
    let span = |bar: &Bar| {
        let x = |ns: u64| left + width * (ns as f64 / axis_ns).min(1.0);
        let (begin, end) = (x(bar.begin_ns), x(bar.end_ns));
        (begin, (end - begin).max(BAR_MIN))
    };
    let placed = || gantt.bars.iter().zip(&layout.y).map(|(bar, y)| (bar, top + y));
    let mut out = String::new();
    for lane in 0..gantt.lanes.len() {
        let RGBColor(r, g, b) = COLOURS[lane % COLOURS.len()];
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<path stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{thickness:.2}\" fill=\"none\" d=\""
        );
        for (bar, y) in placed().filter(|(bar, _)| bar.lane == lane) {
            let (begin, length) = span(bar);
            let _ = write!(out, "M{begin:.1} {y:.1}h{length:.1}");
        }
        out.push_str("\"/>\n");
    }
    if layout.labelled {
        for (bar, y) in placed() {
            let (begin, length) = span(bar);
            let name = markup(&shorten(&xml(&bar.name), 30));
            let label = format!("{}{name} {}", "· ".repeat(bar.depth.min(8) as usize), bar.pid);
            // Beside the bar where there is room, else before it, else on it.
            const ROOM: f64 = 180.0;
            let after = begin + length + 5.0;
            let (x, anchor, colour) = if after + ROOM < left + width {
                (after, "start", "#000")
            } else if begin - ROOM > left {
                (begin - 5.0, "end", "#000")
            } else {
                (left + 5.0, "start", "#fff")
            };
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" \
                 font-family=\"sans-serif\" font-size=\"11\">{label}</text>",
                y + 4.0
            );
        }
    }
    out
}

fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Lane;

    fn chart(processes: usize, name: &str) -> Gantt {
        Gantt {
            title: name.to_owned(),
            wall_ns: 10_000_000_000,
            cores: 2,
            lanes: vec![
                Lane { name: name.to_owned(), processes: processes as u64 },
                Lane { name: "rare".to_owned(), processes: 0 },
            ],
            bars: (0..processes)
                .map(|at| Bar {
                    lane: 0,
                    name: name.to_owned(),
                    pid: 100,
                    begin_ns: at as u64 * 10_000_000_000 / processes as u64,
                    end_ns: at as u64 * 10_000_000_000 / processes as u64 + 1,
                    depth: 1,
                })
                .collect(),
            bin_ns: 1_000_000_000,
            user_cores: vec![1.0; 10],
            system_cores: vec![0.5; 10],
            forks_per_second: vec![7.0; 10],
        }
    }

    #[test]
    fn every_process_is_drawn_and_wide_enough_to_see() {
        for processes in [0, 1, 10, 100, 101, 70_000] {
            let svg = gantt_svg(&chart(processes, "sed")).unwrap();
            assert_eq!(svg.matches("h0.8").count(), processes, "{processes}");
            assert!(svg.len() < 3_000_000, "{} bytes for {processes}", svg.len());
        }
    }

    #[test]
    fn names_are_only_text() {
        let svg = gantt_svg(&chart(3, "<script>\u{1b}&\"x\"</script>")).unwrap();
        assert!(!svg.contains("<script"), "{svg}");
        assert!(!svg.contains('\u{1b}'));
        assert!(svg.contains("&lt;script&gt;"));
    }
}
