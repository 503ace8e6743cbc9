//! The Gantt chart: every process as a bar, below strips that show the activity of the whole tree
//! on the same time axis.
//!
//! The bars of a category are one path with a short segment each, so that 70,000 processes make a
//! file that a browser can open. No bar is left out, and none is drawn too short or too thin to be
//! visible.

mod bars;
mod callouts;
mod marks;
mod path;
mod rows;
mod strips;

use std::cell::RefCell;
use std::rc::Rc;

use proctrace_findings::{Axis, Gantt, GanttOrder, Unit};

use self::marks::Marks;
use self::rows::{Band, Rows};
use super::backend::{Drawn, Size, Surface};
use super::elements::Pen;
use super::look::{self, AXIS, FAINT_INK, GAP, GRID, HEADING, LABEL, LINE, MARGIN, REST, TICK};
use super::page::{Page, Swatch};
use super::scale::{Scale, Tick};
use crate::number::{count, counted, time};

const WIDTH: f64 = 1400.0;
/// Width for the legends of the strips and the names of long bars.
const RIGHT_COLUMN: f64 = 220.0;
/// Width for the tick labels of the strips, and a title.
const LEFT_COLUMN: f64 = 56.0;
/// Maximum width for the names of labelled rows.
const NAMES_MAX: f64 = 250.0;

/// The shade of every other labelled row.
const STRIPE: look::Colour = look::rgb(0xf6f6f6);

/// The time axis shared by strips and bars.
struct TimeAxis {
    scale: Scale,
    ticks: Vec<Tick>,
    left: f64,
    right: f64,
}

impl TimeAxis {
    fn x_at(&self, ns: u64) -> f64 {
        self.left + (self.right - self.left) * self.scale.part(ns as f64)
    }

    fn draw_grid<S: Surface>(&self, page: &Page<S>, top: f64, bottom: f64) -> Drawn {
        for tick in &self.ticks {
            let x = self.x_at(tick.at as u64);
            page.line((x, top), (x, bottom), Pen::of(GRID, 1.0))?;
        }
        Ok(())
    }

    fn draw_numbers<S: Surface>(&self, page: &mut Page<S>) -> Drawn {
        let y = page.take(LINE + 4.0) + LINE / 2.0 + 2.0;
        page.line((self.left, y - 10.0), (self.right, y - 10.0), Pen::of(AXIS, 1.0))?;
        for tick in &self.ticks {
            page.text(self.x_at(tick.at as u64), y, &tick.label, TICK.middle())?;
        }
        let x = self.right + 2.0 * GAP + 8.0;
        page.text(x, y, &self.scale.title(), TICK.colour(FAINT_INK))
    }
}

/// The colour of a lane.
fn colour(gantt: &Gantt, lane: usize) -> look::Colour {
    match gantt.lanes.get(lane) {
        Some(known) if !known.is_rest => {
            let named = gantt.lanes.iter().filter(|lane| !lane.is_rest);
            let names: Vec<&str> = named.map(|lane| &*lane.name).collect();
            let before = gantt.lanes[..lane].iter().filter(|lane| !lane.is_rest).count();
            look::categories(&names).get(before).copied().unwrap_or(REST)
        }
        _ => REST,
    }
}

/// The title of the chart.
pub(super) fn title(gantt: &Gantt) -> &str {
    if gantt.title.is_empty() { "Every process" } else { &gantt.title }
}

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    gantt: &Gantt,
    notes: &[String],
) -> Drawn<Size> {
    let rows = Rows::of(gantt);
    let mut page = Page::new(canvas, WIDTH, title(gantt))?;
    page.notes(subtitle(gantt).iter().map(String::as_str))?;
    page.y += 8.0;

    let left = MARGIN
        + if rows.labelled {
            callouts::names_width(gantt).clamp(LEFT_COLUMN, NAMES_MAX)
        } else {
            LEFT_COLUMN
        };
    let axis = Axis::linear("time since the start", Unit::Nanoseconds);
    let (from, until) = (gantt.from_ns as f64, gantt.until_ns as f64);
    let scale = Scale::exact(&axis, [from, until], 12).between(from, until);
    let ticks = scale.ticks().into_iter().filter(|tick| scale.covers(tick.at)).collect();
    let time_axis = TimeAxis { scale, ticks, left, right: WIDTH - MARGIN - RIGHT_COLUMN };

    let mut marks = Marks::of(gantt, &time_axis, page.width);
    marks.draw_labels(&mut page)?;
    strips::draw(&mut page, gantt, &time_axis)?;
    marks.draw_lines(&page, None, page.y)?;
    time_axis.draw_numbers(&mut page)?;
    page.y += 10.0;
    draw_legend(&mut page, gantt, &time_axis)?;

    let top = page.take(rows.height);
    if rows.labelled {
        draw_stripes(&page, gantt, &time_axis, top)?;
    }
    time_axis.draw_grid(&page, top, top + rows.height)?;
    marks.draw_lines(&page, Some(top), top + rows.height)?;
    bars::draw(&page, gantt, &rows, &time_axis, top)?;
    path::draw(&page, gantt, &rows, &time_axis, top)?;
    if rows.labelled {
        callouts::draw_names(&page, gantt, &rows, &time_axis, top)?;
    } else if gantt.view.order != GanttOrder::Category {
        draw_rank(&page, gantt, &rows, &time_axis, top)?;
        callouts::draw_longest(&page, gantt, &rows, &time_axis, top)?;
    } else {
        draw_bands(&page, gantt, &rows.bands, &time_axis, top)?;
    }
    time_axis.draw_numbers(&mut page)?;
    let mut notes = notes.to_vec();
    if !rows.labelled {
        notes.push(
            "Bars have a minimum length and thickness, so the shortest lifetimes are not to scale."
                .to_owned(),
        );
    }
    if gantt.left_out_processes > 0 && !gantt.strips.is_empty() {
        notes.push("The strips above cover all processes, also those without a bar.".to_owned());
    }
    page.finish(&notes)
}

/// "1,200 processes", or steps.
fn bars_in_words(gantt: &Gantt, number: u64) -> String {
    match gantt.view.steps {
        true => counted(number, "step", "steps"),
        false => counted(number, "process", "processes"),
    }
}

/// Lines on what is shown and what is excluded.
fn subtitle(gantt: &Gantt) -> Vec<String> {
    let (mut processes, mut threads) = (0_u64, 0_u64);
    for lane in &gantt.lanes {
        processes += lane.processes;
        threads += lane.threads;
    }
    let order = match gantt.view.order {
        GanttOrder::Time => "by start time",
        GanttOrder::Tree if gantt.view.steps => "parts below their whole",
        GanttOrder::Tree => "children below their parent",
        GanttOrder::Category if gantt.view.steps => "by group",
        GanttOrder::Category => "by category",
    };
    let mut shown = bars_in_words(gantt, processes);
    if gantt.view.threads {
        shown = format!("{shown} and {}", counted(threads, "thread", "threads"));
    }
    let mut lines = vec![format!("{shown}, {order}")];
    let view = &gantt.view;
    let mut filters = Vec::new();
    if !view.only.is_empty() {
        filters.push(format!("only “{}”", view.only.join("”, “")));
    }
    if let Some(root) = &view.subtree {
        filters.push(format!("only “{root}” and its descendants"));
    }
    if view.from_ns.is_some() || view.until_ns.is_some() {
        filters.push(format!("only from {} to {}", time(gantt.from_ns), time(gantt.until_ns)));
    }
    if let Some(life_ns) = view.min_life_ns {
        filters.push(format!("only lifetimes of at least {}", time(life_ns)));
    }
    if !filters.is_empty() {
        let mut left_out = bars_in_words(gantt, gantt.left_out_processes);
        if gantt.left_out_threads > 0 {
            left_out =
                format!("{left_out} and {}", counted(gantt.left_out_threads, "thread", "threads"));
        }
        lines.push(format!("Filters: {}. Excluded: {left_out}.", filters.join("; ")));
    }
    lines
}

fn draw_legend<S: Surface>(page: &mut Page<S>, gantt: &Gantt, time_axis: &TimeAxis) -> Drawn {
    let mut entries: Vec<(Swatch, String)> = gantt
        .lanes
        .iter()
        .enumerate()
        .filter(|(_, lane)| {
            lane.processes + lane.threads > 0 || gantt.strips.iter().any(|strip| strip.by_lane)
        })
        .map(|(at, lane)| {
            let name = match lane.processes {
                0 => lane.name.clone(),
                n => format!("{} ({})", lane.name, count(n)),
            };
            (Swatch::Area(colour(gantt, at)), name)
        })
        .collect();
    if gantt.lanes.iter().any(|lane| lane.threads > 0) {
        let pen = Pen::of(bars::pale(look::category(0)), 5.0);
        entries.push((Swatch::Line(pen), "threads: paler and thinner".to_owned()));
    }
    entries.extend(path::legend(gantt));
    entries.extend(marks::legend(gantt));
    page.legend_within(time_axis.left, WIDTH - MARGIN, &entries)
}

/// Shades every other row, so that the eye can follow names to their bars.
fn draw_stripes<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    for row in (0..gantt.bars.len()).step_by(2) {
        let y = top + row as f64 * rows::LABELLED_ROW;
        page.rect(MARGIN, y, time_axis.right - MARGIN, rows::LABELLED_ROW, STRIPE)?;
    }
    Ok(())
}

/// Labels with the number of rows above: in start-time order, the number of processes started by
/// then.
fn draw_rank<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    let (left, height) = (time_axis.left, rows.height);
    let (title, numbered) = match gantt.view.order {
        GanttOrder::Tree if gantt.view.steps => ("one row per step, below its whole", false),
        GanttOrder::Tree => ("one row per process, below its parent", false),
        _ if gantt.view.steps => ("steps begun", true),
        _ if gantt.view.threads => ("processes and threads started", true),
        _ => ("processes started", true),
    };
    if numbered {
        let axis = Axis::linear("", Unit::Count);
        let scale = Scale::exact(&axis, [gantt.bars.len() as f64], 8);
        for tick in scale.ticks() {
            let y = top + rows.y.get(tick.at as usize).copied().unwrap_or(height);
            page.line((left - 4.0, y), (left, y), Pen::of(AXIS, 1.0))?;
            page.text(left - GAP - 2.0, y, &tick.label, TICK.end())?;
        }
    }
    page.line((left, top), (left, top + height), Pen::of(AXIS, 1.0))?;
    let style = LABEL.middle().colour(FAINT_INK);
    page.turned((MARGIN + 4.0, top + height / 2.0), title, style, -90.0)
}

fn draw_bands<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    bands: &[Band],
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    for (at, (lane, band)) in gantt.lanes.iter().zip(bands).enumerate() {
        if lane.processes + lane.threads == 0 {
            continue;
        }
        let x = time_axis.right + 2.0 * GAP;
        let middle = top + (band.top + band.bottom) / 2.0;
        page.rect(x - GAP, top + band.top, 3.0, band.bottom - band.top, colour(gantt, at))?;
        let name = HEADING.fit_name(&lane.name, RIGHT_COLUMN - 3.0 * GAP);
        page.text(x + 2.0, middle, &name, LABEL)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
