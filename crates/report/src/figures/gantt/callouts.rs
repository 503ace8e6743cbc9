//! Names of bars: of all where there are few, and else of those that lived longest.

use proctrace_findings::{Bar, Gantt, GanttOrder};

use super::rows::Rows;
use super::{NAMES_MAX, TimeAxis};
use crate::figures::look::{FAINT_INK, GAP, INK, MARGIN, TICK};
use crate::figures::page::Page;
use crate::number::time;

const INDENT: f64 = 9.0;
/// Deeper ones are indented no further.
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

/// The same in so many pixels: the name gets shorter, and the pid stays.
fn label_within(gantt: &Gantt, bar: &Bar, room: f64) -> String {
    let label = label(gantt, bar);
    if TICK.width(&label) <= room {
        return label;
    }
    let pid = format!(" {}", bar.pid);
    let name = label.strip_suffix(&*pid).unwrap_or(&label);
    let short = TICK.fit(name, (room - TICK.width(&pid)).max(0.0));
    // What is fitted is written as it is shown already.
    TICK.fit(&format!("{short}{pid}"), room).into_owned()
}

/// How wide the column of names is.
pub(super) fn names_width(gantt: &Gantt) -> f64 {
    let width = |bar: &Bar| indent(gantt, bar) + TICK.width(&label(gantt, bar)) + 2.0 * GAP;
    gantt.bars.iter().map(width).fold(0.0, f64::max).min(NAMES_MAX)
}

/// A name in front of each row, and how long it lived behind its bar.
pub(super) fn draw_names(
    page: &mut Page,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) {
    for (bar, y) in gantt.bars.iter().zip(&rows.y) {
        let y = top + y;
        let x = MARGIN + GAP / 2.0 + indent(gantt, bar);
        let shown = label_within(gantt, bar, time_axis.left - GAP - x);
        page.svg.text(x, y, &shown, TICK.colour(if bar.is_thread { FAINT_INK } else { INK }));
        let end = time_axis.x_at(bar.end_ns);
        let life = time(bar.end_ns.saturating_sub(bar.begin_ns));
        page.svg.text(end + GAP, y, &life, TICK.colour(FAINT_INK));
    }
}

/// Names beside the bars that lived longest, whose rows are high enough.
pub(super) fn draw_longest(
    page: &mut Page,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) {
    for (bar, y) in rows.named.iter().map(|at| (&gantt.bars[*at], top + rows.y[*at])) {
        let x = time_axis.x_at(bar.end_ns) + GAP;
        let shown = label_within(gantt, bar, page.width - MARGIN - x);
        page.svg.text(x, y, &shown, TICK);
        let life = time(bar.end_ns.saturating_sub(bar.begin_ns));
        let beside = x + TICK.width(&shown) + GAP;
        if beside + TICK.width(&life) < page.width - MARGIN {
            page.svg.text(beside, y, &life, TICK.colour(FAINT_INK));
        }
    }
}
