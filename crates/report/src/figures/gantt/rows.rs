//! Assigns each bar of a Gantt chart to a row: its own, or one shared with non-overlapping bars of
//! its category.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use proctrace_findings::{Gantt, GanttOrder};

/// Up to this number of bars, each has its own labelled row.
const LABELLED_MAX: usize = 120;
pub(super) const LABELLED_ROW: f64 = 16.0;
/// Maximum number of bars with a labelled row above that: the longest-lived, if their lifetime
/// covers a large enough fraction of the displayed time.
const NAMED_MAX: usize = 32;
const NAMED_PART_MIN: f64 = 0.02;
const NAMED_ROW: f64 = 14.0;
/// Approximate total height of the remaining rows, however many there are.
const HEIGHT: f64 = 760.0;
const ROW_MAX: f64 = 12.0;
/// Minimum bar thickness, in pixels.
const THICKNESS_MIN: f64 = 1.5;
/// Minimum height of a band: enough for its label and a gap to the next band.
const BAND_MIN: f64 = 18.0;
const BAND_GAP: f64 = 5.0;

/// The layout of a chart. Lengths are in pixels, from the top of the plotting area.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    /// True if every bar has a row high enough for its name.
    pub(super) labelled: bool,
    /// Otherwise the bars that have such a row, ascending.
    pub(super) named: Vec<usize>,
    /// The vertical centre of each bar.
    pub(super) y: Vec<f64>,
    /// Thickness of the bars.
    pub(super) thickness: f64,
    /// Thickness of the named bars.
    pub(super) named_thickness: f64,
    /// Height of the plotting area.
    pub(super) height: f64,
    /// The band of each lane, where there are bands.
    pub(super) bands: Vec<Band>,
}

/// The vertical range of a lane's bars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Band {
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Rows {
    pub(super) fn of(gantt: &Gantt) -> Self {
        if gantt.view.order == GanttOrder::Category {
            return Self::packed(gantt);
        }
        let bars = gantt.bars.len();
        let labelled = bars <= LABELLED_MAX;
        let named = if labelled { Vec::new() } else { longest(gantt) };
        let row = match labelled {
            true => LABELLED_ROW,
            false => (HEIGHT / (bars - named.len()).max(1) as f64).min(ROW_MAX),
        };
        let mut height = 0.0;
        let mut next_named = named.iter().copied().peekable();
        let y = (0..bars)
            .map(|at| {
                let own = if next_named.next_if_eq(&at).is_some() { NAMED_ROW } else { row };
                height += own;
                height - own / 2.0
            })
            .collect();
        Self {
            labelled,
            named,
            y,
            thickness: (row * if labelled { 0.68 } else { 0.9 }).max(THICKNESS_MIN),
            named_thickness: NAMED_ROW * 0.68,
            height: f64::max(height, 3.0 * row),
            bands: Vec::new(),
        }
    }

    fn packed(gantt: &Gantt) -> Self {
        let (rows, used) = pack(gantt);
        let all: usize = used.iter().sum();
        let row = (HEIGHT / all.max(1) as f64).min(ROW_MAX);
        let mut bands = Vec::with_capacity(used.len());
        let mut top = BAND_GAP;
        for used in used {
            if used == 0 {
                bands.push(Band { top, bottom: top });
                continue;
            }
            let bottom = top + (used as f64 * row).max(BAND_MIN);
            bands.push(Band { top, bottom });
            top = bottom + BAND_GAP;
        }
        let y = gantt
            .bars
            .iter()
            .zip(rows)
            .map(|(bar, at)| {
                bands.get(bar.lane as usize).map_or(0.0, |band| band.top) + (at as f64 + 0.5) * row
            })
            .collect();
        let thickness = (row * 0.9).max(THICKNESS_MIN);
        let (labelled, named) = (false, Vec::new());
        Self { labelled, named, y, thickness, named_thickness: thickness, height: top, bands }
    }
}

/// The longest bars within the displayed time, ascending by index.
fn longest(gantt: &Gantt) -> Vec<usize> {
    let seen_ns = |at: &usize| {
        let bar = &gantt.bars[*at];
        bar.end_ns.min(gantt.until_ns).saturating_sub(bar.begin_ns.max(gantt.from_ns))
    };
    let least = gantt.until_ns.saturating_sub(gantt.from_ns) as f64 * NAMED_PART_MIN;
    let mut longest: Vec<usize> =
        (0..gantt.bars.len()).filter(|at| seen_ns(at) as f64 >= least).collect();
    longest.sort_by_key(|at| (Reverse(seen_ns(at)), *at));
    longest.truncate(NAMED_MAX);
    longest.sort_unstable();
    longest
}

/// The row of each bar within its lane, and the number of rows per lane. Each bar takes the lowest
/// row that is free at its start, which needs no more rows than the peak number of simultaneous
/// bars.
fn pack(gantt: &Gantt) -> (Vec<usize>, Vec<usize>) {
    #[derive(Default)]
    struct LaneRows {
        busy: BinaryHeap<Reverse<(u64, usize)>>,
        free: BTreeSet<usize>,
        used: usize,
    }
    let mut lanes: Vec<LaneRows> = gantt.lanes.iter().map(|_| LaneRows::default()).collect();
    let rows = gantt
        .bars
        .iter()
        .map(|bar| {
            let Some(lane) = lanes.get_mut(bar.lane as usize) else { return 0 };
            while let Some(&Reverse((end, row))) = lane.busy.peek()
                && end <= bar.begin_ns
            {
                lane.busy.pop();
                lane.free.insert(row);
            }
            let row = lane.free.pop_first().unwrap_or_else(|| {
                lane.used += 1;
                lane.used - 1
            });
            lane.busy.push(Reverse((bar.end_ns, row)));
            row
        })
        .collect();
    (rows, lanes.into_iter().map(|lane| lane.used).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bar, gantt};
    use super::*;

    #[test]
    fn bars_that_overlap_never_share_a_row() {
        let bars = [(0, 0, 10), (0, 5, 20), (1, 6, 7), (0, 10, 12), (0, 15, 18)];
        let (rows, used) = pack(&gantt(2, bars.map(|(lane, from, to)| bar(lane, from, to)).into()));
        assert_eq!(rows, [0, 1, 0, 0, 0]);
        assert_eq!(used, [2, 1]);
    }

    #[test]
    fn every_bar_lies_in_its_lanes_band() {
        let bars = (0..5000).map(|n| bar(n % 3, u64::from(n), u64::from(n) + 40)).collect();
        let mut gantt = gantt(3, bars);
        gantt.view.order = GanttOrder::Category;
        let rows = Rows::of(&gantt);
        for (bar, y) in gantt.bars.iter().zip(&rows.y) {
            let band = rows.bands[bar.lane as usize];
            assert!(band.top < *y && *y < band.bottom);
        }
        assert!(rows.height < 950.0, "{}", rows.height);
    }

    #[test]
    fn rows_follow_each_other_within_the_height() {
        for bars in [0, 1, 120, 121, 70_000] {
            let gantt = gantt(1, vec![bar(0, 0, 1); bars]);
            let rows = Rows::of(&gantt);
            assert_eq!(rows.labelled, bars <= LABELLED_MAX);
            assert!(rows.y.is_sorted_by(|a, b| a < b));
            assert!(rows.y.iter().all(|y| *y < rows.height));
            assert!(rows.height <= 2000.0);
        }
    }
}
