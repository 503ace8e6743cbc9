//! A chart of the wall times: one panel per payload, with a dot and its interval per tracer.

use std::path::Path;

use anyhow::{Context, Result};
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::results::{PayloadResults, Results, Row};
use super::tracers::{NONE, PROCTRACE};
use crate::bench::stats::{Estimate, FEWEST_FOR_INTERVAL};

/// One colour per tracer; related tracers have shades of the same colour.
const COLOURS: &[(&str, RGBColor)] = &[
    (PROCTRACE, RGBColor(0xc8, 0x10, 0x2e)),
    ("strace", RGBColor(0xb4, 0x5f, 0x06)),
    ("strace seccomp", RGBColor(0xe0, 0x8e, 0x2b)),
    ("tracexec", RGBColor(0x7a, 0x5c, 0x2e)),
    ("perf trace", RGBColor(0x1b, 0x7f, 0x4b)),
    ("perf record", RGBColor(0x5f, 0xae, 0x57)),
    ("raw ftrace", RGBColor(0x2b, 0x8c, 0x9e)),
    ("bpftrace", RGBColor(0x1f, 0x4e, 0x9c)),
    ("bcc", RGBColor(0x7b, 0x5e, 0xb0)),
    ("forkstat", RGBColor(0x5a, 0x66, 0x70)),
    ("prmon", RGBColor(0x93, 0x9e, 0xa8)),
];
const INK: RGBColor = RGBColor(0x22, 0x26, 0x2b);
const FAINT: RGBColor = RGBColor(0x6b, 0x72, 0x7a);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xe9);
const NOISE: RGBColor = RGBColor(0xe9, 0xec, 0xef);
const ONE: RGBColor = RGBColor(0xa9, 0xaf, 0xb5);

const COLUMNS: usize = 3;
const PANEL: (i32, i32) = (330, 46);
const ROW: i32 = 19;
const NAMES: i32 = 124;
/// Space between panels, for the number to the right of a dot.
const GAP: i32 = 46;
const TOP: i32 = 62;
const BOTTOM: i32 = 62;
const MARGIN: i32 = 24;
const LEGEND_WIDTH: i32 = 1300;
const FONT: &str = "Helvetica, Arial, sans-serif";

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws the chart to an SVG file.
pub(super) fn draw(results: &Results, file: &Path) -> Result<()> {
    let svg = svg(results).context("cannot draw the chart")?;
    std::fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))
}

fn svg(results: &Results) -> Result<String> {
    let tracers = tracers(results);
    let columns = results.payloads.len().clamp(1, COLUMNS) as i32;
    let lines = results.payloads.len().div_ceil(COLUMNS) as i32;
    let panel_height = PANEL.1 + ROW * tracers.len() as i32;
    // The legend must fit as well.
    let width = (2 * MARGIN + NAMES + columns * (PANEL.0 + GAP)).max(LEGEND_WIDTH);
    let height = TOP + lines * panel_height + BOTTOM;
    let axis = Axis::over(results.payloads.iter().flat_map(|payload| {
        let rows = payload.rows.iter().filter_map(|row| row.summary.as_ref());
        rows.flat_map(|summary| [summary.payload_wall.low, summary.payload_wall.high])
    }));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width as u32, height as u32));
        let area = area.into_drawing_area();
        area.fill(&WHITE)?;
        text(
            &area,
            "Wall time of the payload, multiple of the bare run",
            (MARGIN, 22),
            20,
            &INK,
            HPos::Left,
        )?;
        let machine = &results.machine;
        let below = format!("{} CPUs, {}, {}", machine.cpus, machine.processor, machine.kernel);
        text(&area, &below, (MARGIN, 44), 13, &FAINT, HPos::Left)?;
        for (number, payload) in results.payloads.iter().enumerate() {
            let (column, line) = ((number % COLUMNS) as i32, (number / COLUMNS) as i32);
            let corner = (MARGIN + NAMES + column * (PANEL.0 + GAP), TOP + line * panel_height);
            if column == 0 {
                for (row, tracer) in tracers.iter().enumerate() {
                    let at = (corner.0 - 12, middle(corner.1, row));
                    let size = if *tracer == PROCTRACE { 14 } else { 13 };
                    text(&area, tracer, at, size, &colour(tracer), HPos::Right)?;
                }
            }
            panel(&area, payload, &tracers, &axis, corner)?;
        }
        legend(&area, (MARGIN, height - 26), results)?;
        area.present()?;
    }
    Ok(svg)
}

/// The tracers shown, in the order of the table.
fn tracers(results: &Results) -> Vec<&str> {
    let rows = || results.payloads.iter().flat_map(|payload| &payload.rows);
    let mut tracers: Vec<&str> = Vec::new();
    for row in rows().filter(|row| row.summary.is_some() && row.tracer != NONE) {
        if !tracers.contains(&row.tracer.as_str()) {
            tracers.push(&row.tracer);
        }
    }
    tracers
}

fn colour(tracer: &str) -> RGBColor {
    COLOURS.iter().find(|(name, _)| *name == tracer).map_or(FAINT, |(_, colour)| *colour)
}

fn middle(top: i32, row: usize) -> i32 {
    top + 28 + ROW * row as i32 + ROW / 2
}

fn panel(
    area: &Area<'_>,
    payload: &PayloadResults,
    tracers: &[&str],
    axis: &Axis,
    (left, top): (i32, i32),
) -> Drawn {
    let x = |value: f64| left + (axis.position(value) * f64::from(PANEL.0)).round() as i32;
    let (first, last) = (top + 28, top + 28 + ROW * tracers.len() as i32);
    text(area, &payload.name, (left, top + 14), 15, &INK, HPos::Left)?;
    let row_of = |name: &str| payload.rows.iter().find(|row| row.tracer == name);
    if let Some(none) = row_of(NONE).and_then(|row| row.summary.as_ref()) {
        let (low, high) = (x(none.payload_wall.low), x(none.payload_wall.high));
        area.draw(&Rectangle::new([(low, first), (high, last)], NOISE.filled()))?;
    }
    for tick in axis.ticks() {
        let style = if tick == 1.0 { ONE.stroke_width(1) } else { GRID.stroke_width(1) };
        area.draw(&PathElement::new(vec![(x(tick), first), (x(tick), last)], style))?;
        text(area, &format!("{tick}"), (x(tick), last + 9), 11, &FAINT, HPos::Center)?;
    }
    for (number, tracer) in tracers.iter().enumerate() {
        let y = middle(top, number);
        let Some(row) = row_of(tracer) else { continue };
        let Some(wall) = row.summary.as_ref().map(|summary| summary.payload_wall) else {
            text(area, "none finished", (x(1.0) + 8, y), 11, &FAINT, HPos::Left)?;
            continue;
        };
        dot(area, wall, complete(row, payload), colour(tracer), y, &x)?;
    }
    Ok(())
}

/// The interval, the median on it, and its number.
fn dot(
    area: &Area<'_>,
    wall: Estimate,
    complete: bool,
    colour: RGBColor,
    y: i32,
    x: &dyn Fn(f64) -> i32,
) -> Drawn {
    let line = vec![(x(wall.low), y), (x(wall.high), y)];
    area.draw(&PathElement::new(line, colour.stroke_width(2)))?;
    let at = (x(wall.median), y);
    area.draw(&Circle::new(at, 4, WHITE.filled()))?;
    let style = if complete { colour.filled() } else { colour.stroke_width(2) };
    area.draw(&Circle::new(at, 4, style))?;
    let number = if wall.median < 9.995 {
        format!("{:.2}", wall.median)
    } else {
        format!("{:.0}", wall.median)
    };
    text(area, &number, (x(wall.high).max(at.0 + 4) + 6, y), 12, &colour, HPos::Left)
}

/// Whether a tracer recorded every event of every kind in every round.
fn complete(row: &Row, payload: &PayloadResults) -> bool {
    row.pairs.iter().all(|pair| {
        let letters = pair.traced.seen.counts.letters(payload.declared);
        !letters.contains(['-', '!'])
    })
}

fn legend(area: &Area<'_>, (left, y): (i32, i32), results: &Results) -> Drawn {
    let rows = results.payloads.iter().flat_map(|payload| &payload.rows);
    let most = rows.map(|row| row.pairs.len()).max().unwrap_or(0);
    let interval = if most < FEWEST_FOR_INTERVAL {
        "median of pairs of runs, with their range".to_owned()
    } else {
        format!(
            "median of pairs of runs, 95 % interval (fewer than {FEWEST_FOR_INTERVAL} pairs: range)"
        )
    };
    let entry = |at: i32, words: &str| text(area, words, (left + at, y), 12, &INK, HPos::Left);
    entry(16, "records every fork, exec, exit and failed open")?;
    entry(346, "misses some, or does not record them")?;
    entry(617, "a bare run against another")?;
    entry(822, &interval)?;
    area.draw(&Circle::new((left + 5, y), 4, INK.filled()))?;
    area.draw(&Circle::new((left + 335, y), 4, INK.stroke_width(2)))?;
    area.draw(&Rectangle::new([(left + 593, y - 6), (left + 609, y + 6)], NOISE.filled()))?;
    area.draw(&PathElement::new(vec![(left + 794, y), (left + 814, y)], INK.stroke_width(2)))?;
    area.draw(&Circle::new((left + 804, y), 4, INK.filled()))
}

fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    size: i32,
    colour: &RGBColor,
    side: HPos,
) -> Drawn {
    let style = TextStyle::from((FONT, size).into_font()).color(colour);
    let style = style.pos(Pos::new(side, VPos::Center));
    area.draw_text(words, &style, at)
}
