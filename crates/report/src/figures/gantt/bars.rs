//! The bars themselves, as a few sets of lines per lane.

use std::cmp::Reverse;

use plotters::style::RGBColor;
use proctrace_findings::{Bar, Gantt, GanttOrder};

use super::rows::Rows;
use super::{TimeAxis, colour};
use crate::figures::backend::{Drawn, Surface, units};
use crate::figures::elements::{Pen, Segments};
use crate::figures::look::{Colour, rgb};
use crate::figures::page::{Page, at};

/// Minimum bar length, in units.
const LENGTH_MIN: i32 = 10;
/// Thickness of thread bars relative to process bars; they are also paler.
const THREAD: f64 = 0.55;
/// Colour of guide lines.
const FAINT: Colour = rgb(0xcccccc);

/// A segment of a row, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    y: i32,
    begin: i32,
    end: i32,
}

pub(super) fn draw<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    if rows.labelled && gantt.view.order == GanttOrder::Tree {
        draw_births(page, gantt, rows, time_axis, top)?;
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
            page.area.draw(&Segments { ends: joined(std::mem::take(pieces)), pen })?;
        }
    }
    Ok(())
}

pub(super) fn piece(bar: &Bar, y: f64, time_axis: &TimeAxis) -> Piece {
    let (mut begin, mut end) =
        (units(time_axis.x_at(bar.begin_ns)), units(time_axis.x_at(bar.end_ns)));
    if end - begin < LENGTH_MIN {
        end = begin + LENGTH_MIN;
        // At the end of the axis a bar can only be extended to the left.
        let beyond = (end - units(time_axis.right)).max(0);
        (begin, end) = (begin - beyond, end - beyond);
    }
    Piece { y: units(y), begin, end }
}

/// The ends of all segments. Segments that coincide to a unit are drawn once: the picture is the
/// same, and the file stays short however many segments there are.
pub(super) fn joined(mut pieces: Vec<Piece>) -> Vec<(i32, i32)> {
    pieces.sort_unstable();
    pieces.dedup_by(|next, kept| {
        let joined = next.y == kept.y && next.begin <= kept.end;
        if joined {
            kept.end = kept.end.max(next.end);
        }
        joined
    });
    pieces.iter().flat_map(|piece| [(piece.begin, piece.y), (piece.end, piece.y)]).collect()
}

/// A thin line from each parent's bar down to its child's, at the child's start time.
fn draw_births<S: Surface>(
    page: &Page<S>,
    gantt: &Gantt,
    rows: &Rows,
    time_axis: &TimeAxis,
    top: f64,
) -> Drawn {
    let mut ends = Vec::new();
    for (bar, y) in gantt.bars.iter().zip(&rows.y) {
        let Some(parent) = bar.parent.and_then(|parent| rows.y.get(parent as usize)) else {
            continue;
        };
        if bar.begin_ns >= gantt.from_ns {
            let x = time_axis.x_at(bar.begin_ns);
            ends.extend([at(x, top + parent), at(x, top + y)]);
        }
    }
    page.area.draw(&Segments { ends, pen: Pen::of(FAINT, 0.7) })
}

/// The same hue, halfway to white.
pub(super) fn pale(colour: Colour) -> Colour {
    let half = |channel: u8| channel / 2 + 128;
    RGBColor(half(colour.0), half(colour.1), half(colour.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_covers_the_same_is_drawn_once() {
        let piece = |y, begin, end| Piece { y, begin, end };
        let same = vec![piece(5, 10, 18), piece(5, 12, 30), piece(5, 10, 18), piece(5, 31, 40)];
        assert_eq!(joined(same), [(10, 5), (30, 5), (31, 5), (40, 5)]);
        assert_eq!(joined(vec![piece(9, 3, 4), piece(5, 10, 18)])[0], (10, 5));
        assert!(joined(vec![]).is_empty());
    }
}
