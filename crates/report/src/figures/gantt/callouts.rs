//! Names of bars: of all if there are few, otherwise of the longest-lived.

use proctrace_findings::{Bar, Gantt, GanttOrder};

use super::rows::Rows;
use super::{NAMES_MAX, TimeAxis};
use crate::figures::backend::{Drawn, Surface};
use crate::figures::look::{FAINT_INK, GAP, INK, MARGIN, TICK};
use crate::figures::page::Page;
use crate::number::time;

const INDENT: f64 = 9.0;
/// Maximum indentation depth.
const INDENTS_MAX: u32 = 9;

fn name<'a>(gantt: &'a Gantt, bar: &Bar) -> &'a str {
    gantt.names.get(bar.name as usize).map_or("?", String::as_str)
}

fn indent(gantt: &Gantt, bar: &Bar) -> f64 {
    let tree = gantt.view.order == GanttOrder::Tree;
    if tree { f64::from(bar.depth.min(INDENTS_MAX)) * INDENT } else { 0.0 }
}

fn label(gantt: &Gantt, bar: &Bar) -> String {
    let what = if bar.is_thread { "thread of" } else { "" };
    format!("{what} {} {}", name(gantt, bar), bar.pid).trim().to_owned()
}

/// The same, fitted into `room` pixels by shortening the name but not the pid.
fn label_within(gantt: &Gantt, bar: &Bar, room: f64) -> String {
    let label = label(gantt, bar);
    if TICK.width(&label) <= room {
        return label;
    }
    let pid = format!(" {}", bar.pid);
    let name = label.strip_suffix(&*pid).unwrap_or(&label);
    let short = TICK.fit_name(name, (room - TICK.width(&pid)).max(0.0));
    // The fitted text is already escaped for display.
    TICK.fit(&format!("{short}{pid}"), room).into_owned()
}

/// Width of the column of names.
pub(super) fn names_width(gantt: &Gantt) -> f64 {
    let width = |bar: &Bar| indent(gantt, bar) + TICK.width(&label(gantt, bar)) + 2.0 * GAP;
    gantt.bars.iter().map(width).fold(0.0, f64::max).min(NAMES_MAX)
}

/// Draws a name before each row, and the lifetime after its bar.
pub(super) fn draw_names<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    for (bar, y) in gantt.bars.iter().zip(&rows.y) {
        let y = top + y;
        let x = MARGIN + GAP / 2.0 + indent(gantt, bar);
        let shown = label_within(gantt, bar, time_axis.left - GAP - x);
        page.text(x, y, &shown, TICK.colour(if bar.is_thread { FAINT_INK } else { INK }))?;
        let end = time_axis.x_at(bar.end_ns);
        let life = time(bar.end_ns.saturating_sub(bar.begin_ns));
        page.text(end + GAP, y, &life, TICK.colour(FAINT_INK))?;
    }
    Ok(())
}

/// Draws names beside the longest-lived bars, whose rows are high enough.
pub(super) fn draw_longest<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    for (bar, y) in rows.named.iter().map(|at| (&gantt.bars[*at], top + rows.y[*at])) {
        let x = time_axis.x_at(bar.end_ns) + GAP;
        let shown = label_within(gantt, bar, page.width - MARGIN - x);
        page.text(x, y, &shown, TICK)?;
        let life = time(bar.end_ns.saturating_sub(bar.begin_ns));
        let beside = x + TICK.width(&shown) + GAP;
        if beside + TICK.width(&life) < page.width - MARGIN {
            page.text(beside, y, &life, TICK.colour(FAINT_INK))?;
        }
    }
    Ok(())
}
