//! Invariants of every Gantt chart.

use proctrace_findings::{Bar, GanttView, Lane, PathPiece};

use super::*;
use crate::figures::gantt_svg;

/// A bar between two times in nanoseconds.
pub(super) fn bar(lane: u32, begin_ns: u64, end_ns: u64) -> Bar {
    Bar { lane, name: 0, pid: 100, begin_ns, end_ns, depth: 0, parent: None, is_thread: false }
}

/// A chart spanning a million nanoseconds.
pub(super) fn gantt(lanes: usize, bars: Vec<Bar>) -> Gantt {
    let lane = |at| Lane {
        name: format!("lane {at}"),
        processes: bars.iter().filter(|bar| bar.lane as usize == at).count() as u64,
        threads: 0,
        is_rest: false,
    };
    Gantt {
        title: "job".to_owned(),
        view: GanttView::default(),
        left_out_processes: 0,
        left_out_threads: 0,
        from_ns: 0,
        until_ns: 1_000_000,
        lanes: (0..lanes).map(lane).collect(),
        names: vec!["sed".to_owned()],
        bars,
        path: Vec::new(),
        marks: Vec::new(),
        edges_ns: vec![0, 1_000_000],
        strips: Vec::new(),
    }
}

/// The path segments of one colour: y, begin and end in units. An independent SVG parser for the
/// few commands in use.
fn drawn(svg: &str, colour: look::Colour) -> Vec<(i64, i64, i64)> {
    let number = |text: &str| text.parse::<i64>().unwrap();
    let mut found = Vec::new();
    for line in svg.lines().filter(|line| line.contains(&stroke(colour))) {
        let Some(path) = line.strip_prefix("<path d=\"m") else { continue };
        let (mut x, mut y) = (0, 0);
        for piece in path.split('"').next().unwrap().split('m') {
            let (place, length) = piece.split_once('h').unwrap();
            let second = place[1..].find([' ', '-']).unwrap() + 1;
            x += number(&place[..second]);
            y += number(place[second..].trim());
            let end = x + number(length);
            found.push((y, x, end));
            x = end;
        }
    }
    found
}

fn stroke(colour: look::Colour) -> String {
    let look::Colour { 0: red, 1: green, 2: blue } = colour;
    format!("stroke=\"#{red:02x}{green:02x}{blue:02x}\"")
}

/// Begin and end of the time axis in units, which is a separate line above its tick labels.
fn edges(svg: &str) -> (f64, f64) {
    let width = format!("{} stroke-width=\"10\"", stroke(AXIS));
    let line = svg.lines().find(|line| line.contains(&width)).unwrap();
    let path = line.strip_prefix("<path d=\"m").unwrap();
    let (left, rest) = path.split_once(' ').unwrap();
    let length = rest.split_once('h').unwrap().1.split('"').next().unwrap();
    let left: f64 = left.parse().unwrap();
    (left, left + length.parse::<f64>().unwrap())
}

#[test]
fn every_process_is_drawn_and_long_enough_to_see() {
    for processes in [1_u64, 10, 120, 121, 5_000, 70_000] {
        let bars: Vec<Bar> = (0..processes)
            .map(|n| n * 999_999 / processes)
            .map(|begin| bar((begin % 2) as u32, begin, begin + 1 + begin % 7 * 30_000))
            .collect();
        for order in [GanttOrder::Time, GanttOrder::Tree, GanttOrder::Category] {
            let mut gantt = gantt(2, bars.clone());
            gantt.view.order = order;
            let svg = gantt_svg(&gantt);
            let rows = Rows::of(&gantt);
            let pieces = [0, 1].map(|lane| drawn(&svg, colour(&gantt, lane)));
            // The first bar marks the top of the plot.
            let top = pieces.iter().flatten().map(|piece| piece.0).min().unwrap() as f64 / 10.0
                - rows.y.iter().copied().fold(f64::INFINITY, f64::min);
            let mut sorted = pieces.clone();
            sorted.iter_mut().for_each(|pieces| pieces.sort_unstable());
            // The axis positions of 0 and 1,000,000 ns.
            let (left, right) = edges(&svg);
            for (bar, y) in bars.iter().zip(&rows.y) {
                let y = ((top + y) * 10.0).round() as i64;
                let of_lane = &sorted[bar.lane as usize];
                let near = of_lane.partition_point(|piece| piece.0 < y - 1);
                let x = |ns: u64| left + (right - left) * ns.min(1_000_000) as f64 / 1e6;
                let (from, to) = (x(bar.begin_ns) as i64, x(bar.end_ns) as i64);
                let mut found = of_lane[near..].iter().take_while(|piece| piece.0 <= y + 1);
                let is_drawn = found.any(|(_, begin, end)| {
                    // At the right edge a bar can only be extended to the left.
                    let begins = *begin <= from + 1 || from + 10 > right as i64;
                    begins && *end >= to - 1 && *end >= from && end - begin >= 10
                });
                assert!(
                    is_drawn,
                    "{bar:?} of {processes}, {order:?}: not from {from} to {to} at {y}"
                );
            }
            assert!(svg.len() < 3_000_000, "{} bytes for {processes}", svg.len());
        }
    }
}

#[test]
fn a_million_processes_make_a_file_that_opens() {
    let bars = (0..1_000_000).map(|n| bar((n % 9) as u32, n, n + 1_000)).collect();
    let svg = gantt_svg(&gantt(9, bars));
    assert!(svg.len() < 3_000_000, "{} bytes", svg.len());
}

#[test]
fn the_critical_path_is_a_line_on_its_bars() {
    for processes in [10_u64, 5_000] {
        let bars: Vec<Bar> = (0..processes).map(|n| bar(0, n, 1_000_000)).collect();
        let mut gantt = gantt(1, bars);
        let piece = |bar, begin_ns, end_ns| PathPiece { bar, begin_ns, end_ns };
        // The last two have no bar, and no time.
        gantt.path = vec![piece(3, 0, 400_000), piece(7, 400_000, 900_000)];
        gantt.path.extend([piece(u32::MAX, 0, 1_000_000), piece(1, 900_000, 900_000)]);
        let svg = gantt_svg(&gantt);
        let (left, right) = edges(&svg);
        let x = |ns: u64| (left + (right - left) * ns as f64 / 1e6).round() as i64;
        let line = drawn(&svg, look::PAPER);
        let times: Vec<(i64, i64)> = line.iter().map(|(_, begin, end)| (*begin, *end)).collect();
        assert_eq!(times, [(x(0), x(400_000)), (x(400_000), x(900_000))], "{line:?}");
        let rows = Rows::of(&gantt);
        let apart = ((rows.y[7] - rows.y[3]) * 10.0).round() as i64;
        assert!((line[1].0 - line[0].0 - apart).abs() <= 1, "{line:?}");
        // The first dark line is that of the legend.
        assert_eq!(drawn(&svg, look::INK)[1..], line);
        assert!(svg.contains("on the critical path"));
    }
    assert!(!gantt_svg(&gantt(1, vec![bar(0, 0, 9)])).contains("critical path"));
}

#[test]
fn a_path_of_any_length_makes_a_file_that_opens() {
    let mut gantt = gantt(1, (0..70_000).map(|n| bar(0, n, n + 900_000)).collect());
    // Just long enough to be drawn, and each in another row.
    let piece = |n: u32| {
        let begin_ns = u64::from(n) * 20;
        PathPiece { bar: n, begin_ns, end_ns: begin_ns + 20 }
    };
    gantt.path = (0..50_000).map(piece).collect();
    let svg = gantt_svg(&gantt);
    assert!(svg.len() < 4_000_000, "{} bytes", svg.len());
}
