//! Where each bar of a Gantt chart goes: a row per process while there are few, and else a band
//! per program in which processes that do not overlap share a row.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use proctrace_findings::Gantt;

/// With at most so many processes each has a row of its own, with its name.
const LABELLED_MAX: usize = 100;
const LABELLED_ROW: f64 = 16.0;
/// Above that the bars take about so much height, however many there are.
const PACKED_HEIGHT: f64 = 800.0;
const PACKED_ROW_MAX: f64 = 12.0;
/// A band is high enough for its label, and apart from the next.
const BAND_MIN: f64 = 16.0;
const BAND_GAP: f64 = 5.0;

/// The plan of a chart. Lengths are in pixels, from the top of the plotting area.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    /// Whether every bar has a row and a name of its own.
    pub(crate) labelled: bool,
    /// The middle of each bar.
    pub(crate) y: Vec<f64>,
    /// How thick bars are.
    pub(crate) thickness: f64,
    /// Height of the plotting area.
    pub(crate) height: f64,
    /// Top and bottom of each lane's band; empty where bars are labelled.
    pub(crate) bands: Vec<(f64, f64)>,
}

impl Layout {
    pub(crate) fn of(gantt: &Gantt) -> Self {
        if gantt.bars.len() <= LABELLED_MAX { Self::labelled(gantt) } else { Self::packed(gantt) }
    }

    fn labelled(gantt: &Gantt) -> Self {
        Self {
            labelled: true,
            y: (0..gantt.bars.len()).map(|row| (row as f64 + 0.5) * LABELLED_ROW).collect(),
            thickness: LABELLED_ROW * 0.7,
            height: gantt.bars.len().max(3) as f64 * LABELLED_ROW,
            bands: Vec::new(),
        }
    }

    fn packed(gantt: &Gantt) -> Self {
        let (rows, used) = pack(gantt);
        let all: usize = used.iter().sum();
        let row = (PACKED_HEIGHT / all.max(1) as f64).min(PACKED_ROW_MAX);
        let mut bands = Vec::with_capacity(used.len());
        let mut top = BAND_GAP;
        for used in used {
            let height = (used as f64 * row).max(BAND_MIN);
            bands.push((top, top + height));
            top += height + BAND_GAP;
        }
        let y = gantt
            .bars
            .iter()
            .zip(rows)
            .map(|(bar, at)| bands[bar.lane].0 + (at as f64 + 0.5) * row)
            .collect();
        Self { labelled: false, y, thickness: row * 0.9, height: top, bands }
    }
}

/// The row of each bar within its lane, and how many rows each lane needs: the lowest row that is
/// free when the bar begins, which takes as few rows as there are bars at one time.
fn pack(gantt: &Gantt) -> (Vec<usize>, Vec<usize>) {
    struct LaneRows {
        busy: BinaryHeap<Reverse<(u64, usize)>>,
        free: BTreeSet<usize>,
        used: usize,
    }
    let mut lanes: Vec<LaneRows> = gantt
        .lanes
        .iter()
        .map(|_| LaneRows { busy: BinaryHeap::new(), free: BTreeSet::new(), used: 0 })
        .collect();
    let rows = gantt
        .bars
        .iter()
        .map(|bar| {
            let lane = &mut lanes[bar.lane];
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
    use super::*;
    use proctrace_findings::{Bar, Lane};

    fn gantt(lanes: usize, bars: &[(usize, u64, u64)]) -> Gantt {
        Gantt {
            title: String::new(),
            wall_ns: 100,
            cores: 1,
            lanes: (0..lanes).map(|_| Lane { name: String::new(), processes: 0 }).collect(),
            bars: bars
                .iter()
                .map(|&(lane, begin_ns, end_ns)| Bar {
                    lane,
                    name: String::new(),
                    pid: 1,
                    begin_ns,
                    end_ns,
                    depth: 0,
                })
                .collect(),
            bin_ns: 1,
            user_cores: vec![],
            system_cores: vec![],
            forks_per_second: vec![],
        }
    }

    #[test]
    fn bars_that_overlap_never_share_a_row() {
        let (rows, used) =
            pack(&gantt(2, &[(0, 0, 10), (0, 5, 20), (1, 6, 7), (0, 10, 12), (0, 15, 18)]));
        assert_eq!(rows, [0, 1, 0, 0, 0]);
        assert_eq!(used, [2, 1]);
    }

    #[test]
    fn every_bar_lies_in_its_lanes_band() {
        let bars: Vec<_> = (0..5000).map(|n| (n % 3, n as u64, n as u64 + 40)).collect();
        let gantt = gantt(3, &bars);
        let layout = Layout::of(&gantt);
        assert!(!layout.labelled);
        for (bar, y) in gantt.bars.iter().zip(&layout.y) {
            let (top, bottom) = layout.bands[bar.lane];
            assert!(top < *y && *y < bottom);
        }
        assert!(layout.height < 900.0, "{}", layout.height);
    }
}
