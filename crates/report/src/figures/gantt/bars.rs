//! The bars themselves, as a few paths per lane.

use std::cmp::Reverse;
use std::fmt::Write as _;

use proctrace_findings::{Bar, Gantt, GanttOrder};

use super::rows::Rows;
use super::{TimeAxis, colour};
use crate::figures::page::Page;
use crate::figures::svg::Pen;

/// Minimum bar length, in tenths of a pixel.
const LENGTH_MIN: i64 = 10;
/// Thickness of thread bars relative to process bars; they are also paler.
const THREAD: f64 = 0.55;
/// Colour of guide lines.
const FAINT: &str = "#cccccc";

/// A segment of a row, in tenths of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    y: i64,
    begin: i64,
    end: i64,
}

pub(super) fn draw(page: &mut Page, gantt: &Gantt, rows: &Rows, time_axis: &TimeAxis, top: f64) {
    if rows.labelled && gantt.view.order == GanttOrder::Tree {
        draw_births(page, gantt, rows, time_axis, top);
    }
    let lanes = gantt.lanes.len().max(1);
    // Per lane: processes and threads, then those with a taller, named row.
    let mut pieces = vec![[const { Vec::new() }; 4]; lanes];
    let mut named = rows.named.iter().copied().peekable();
    for (at, (bar, y)) in gantt.bars.iter().zip(&rows.y).enumerate() {
        let named = if named.next_if_eq(&at).is_some() { 2 } else { 0 };
        let lane = (bar.lane as usize).min(lanes - 1);
        let kind = named + usize::from(bar.is_thread);
        pieces[lane][kind].push(piece(bar, top + y, time_axis));
    }
    // Largest lanes first, so that rare bars are not hidden below them.
    let mut order: Vec<usize> = (0..lanes).collect();
    order.sort_by_key(|lane| Reverse(pieces[*lane][0].len()));
    for lane in order {
        let colour = colour(gantt, lane);
        for (kind, pieces) in pieces[lane].iter_mut().enumerate() {
            let thick = if kind < 2 { rows.thickness } else { rows.named_thickness };
            let pen = match kind % 2 {
                0 => Pen::of(colour, thick),
                _ => Pen::of(pale(colour), (thick * THREAD).max(1.0)),
            };
            page.svg.stroke(&path(std::mem::take(pieces)), pen);
        }
    }
}

pub(super) fn piece(bar: &Bar, y: f64, time_axis: &TimeAxis) -> Piece {
    let tenths = |px: f64| (px * 10.0).round() as i64;
    let (mut begin, mut end) =
        (tenths(time_axis.x_at(bar.begin_ns)), tenths(time_axis.x_at(bar.end_ns)));
    if end - begin < LENGTH_MIN {
        end = begin + LENGTH_MIN;
        // At the end of the axis a bar can only be extended to the left.
        let beyond = (end - tenths(time_axis.right)).max(0);
        (begin, end) = (begin - beyond, end - beyond);
    }
    Piece { y: tenths(y), begin, end }
}

/// All segments as one path. Segments that coincide to a tenth of a pixel are drawn once: the
/// picture is the same, and the path stays short however many segments there are.
pub(super) fn path(mut pieces: Vec<Piece>) -> String {
    pieces.sort_unstable();
    pieces.dedup_by(|next, kept| {
        let joined = next.y == kept.y && next.begin <= kept.end;
        if joined {
            kept.end = kept.end.max(next.end);
        }
        joined
    });
    let mut out = String::with_capacity(pieces.len() * 12);
    let (mut x, mut y) = (0, 0);
    for piece in pieces {
        out.push('m');
        tenths(piece.begin - x, &mut out);
        // A minus sign separates two numbers as well as a space does.
        if piece.y >= y {
            out.push(' ');
        }
        tenths(piece.y - y, &mut out);
        out.push('h');
        tenths(piece.end - piece.begin, &mut out);
        (x, y) = (piece.end, piece.y);
    }
    out
}

/// Tenths as a decimal number, as short as SVG allows.
fn tenths(value: i64, out: &mut String) {
    let (whole, tenth) = (value.abs() / 10, value.abs() % 10);
    if value < 0 {
        out.push('-');
    }
    // Writing to a String cannot fail.
    if whole > 0 || tenth == 0 {
        let _ = write!(out, "{whole}");
    }
    if tenth > 0 {
        let _ = write!(out, ".{tenth}");
    }
}

/// A thin line from each parent's bar down to its child's, at the child's start time.
fn draw_births(page: &mut Page, gantt: &Gantt, rows: &Rows, time_axis: &TimeAxis, top: f64) {
    let mut path = String::new();
    for (bar, y) in gantt.bars.iter().zip(&rows.y) {
        let Some(parent) = bar.parent.and_then(|parent| rows.y.get(parent as usize)) else {
            continue;
        };
        if bar.begin_ns >= gantt.from_ns {
            let x = time_axis.x_at(bar.begin_ns);
            let _ = write!(path, "M{x:.1} {:.1}V{:.1}", top + parent, top + y);
        }
    }
    page.svg.stroke(&path, Pen::of(FAINT, 0.7));
}

/// The same hue, halfway to white.
pub(super) fn pale(colour: &'static str) -> &'static str {
    match colour {
        "#332288" => "#9990c3",
        "#cc6677" => "#e5b2bb",
        "#44aa99" => "#a1d4cc",
        "#ddcc77" => "#eee5bb",
        "#88ccee" => "#c3e5f6",
        "#882255" => "#c390aa",
        "#117733" => "#88bb99",
        "#aa4499" => "#d4a1cc",
        "#999933" => "#cccc99",
        _ => "#dddddd",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_and_short() {
        let piece = |y, begin, end| Piece { y, begin, end };
        assert_eq!(path(vec![piece(5, 10, 18), piece(25, 3, 30)]), "m1 .5h.8m-1.5 2h2.7");
        assert_eq!(path(vec![]), "");
    }

    #[test]
    fn what_covers_the_same_is_drawn_once() {
        let piece = |y, begin, end| Piece { y, begin, end };
        let same = vec![piece(5, 10, 18), piece(5, 12, 30), piece(5, 10, 18), piece(5, 31, 40)];
        assert_eq!(path(same), "m1 .5h2m.1 0h.9");
    }
}
