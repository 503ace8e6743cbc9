//! The Gantt chart of a real recording, checked against the recording itself.

use std::collections::BTreeSet;
use std::path::Path;

use proctrace_analysis::{Options, Recording, Rules, analyse, gantt};
use proctrace_findings::{Gantt, GanttOrder, GanttView, Strip};

fn tour() -> Recording {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../fixtures/traces");
    Recording::load(traces.join("tour-2.ptrace"), &Rules::generic()).unwrap()
}

fn chart(recording: &Recording, view: GanttView) -> Gantt {
    gantt(recording, &view, &Options::default()).unwrap()
}

fn pids(gantt: &Gantt) -> Vec<i32> {
    let mut pids: Vec<i32> = gantt.bars.iter().map(|bar| bar.pid).collect();
    pids.sort_unstable();
    pids
}

/// The sum of all series of a strip, integrated over time.
fn integral(gantt: &Gantt, strip: &str) -> f64 {
    let strip: &Strip = gantt.strips.iter().find(|known| known.title == strip).unwrap();
    let values =
        strip.series.iter().flat_map(|series| series.values.iter().zip(gantt.edges_ns.windows(2)));
    values.map(|(value, edges)| value.unwrap() * (edges[1] - edges[0]) as f64).sum()
}

#[test]
fn every_process_has_one_bar_in_any_order() {
    let recording = tour();
    let mut all: Vec<i32> = recording.processes().iter().map(|process| process.pid).collect();
    all.sort_unstable();
    for order in [GanttOrder::Time, GanttOrder::Tree, GanttOrder::Category] {
        let chart = chart(&recording, GanttView { order, ..GanttView::default() });
        assert_eq!(pids(&chart), all);
        assert_eq!((chart.left_out_processes, chart.left_out_threads), (0, 0));
        let counted: u64 = chart.lanes.iter().map(|lane| lane.processes).sum();
        assert_eq!(counted, all.len() as u64);
        if order == GanttOrder::Time {
            assert!(chart.bars.is_sorted_by_key(|bar| bar.begin_ns));
        }
    }
}

#[test]
fn every_thread_has_one_where_they_are_asked_for() {
    let recording = tour();
    for order in [GanttOrder::Time, GanttOrder::Tree] {
        let chart = chart(&recording, GanttView { order, threads: true, ..GanttView::default() });
        assert_eq!(chart.bars.len(), recording.tasks().len());
        let threads = recording.tasks().iter().filter(|task| task.is_thread).count();
        assert!(threads > 0);
        assert_eq!(chart.bars.iter().filter(|bar| bar.is_thread).count(), threads);
        for bar in chart.bars.iter().filter(|bar| bar.is_thread) {
            let parent = &chart.bars[bar.parent.unwrap() as usize];
            assert_eq!((parent.pid, parent.is_thread), (bar.pid, false));
        }
    }
}

#[test]
fn in_a_tree_descendants_follow_their_ancestor_without_gap() {
    let recording = tour();
    let chart = chart(&recording, GanttView { order: GanttOrder::Tree, ..GanttView::default() });
    for (row, bar) in chart.bars.iter().enumerate() {
        let Some(parent) = bar.parent.map(|parent| parent as usize) else { continue };
        assert_eq!(bar.depth, chart.bars[parent].depth + 1);
        assert!(chart.bars[parent + 1..=row].iter().all(|between| between.depth >= bar.depth));
    }
    assert!(chart.bars.iter().any(|bar| bar.depth >= 2));
}

#[test]
fn strips_add_up_to_what_the_report_says() {
    let recording = tour();
    let summary = analyse(&recording).summary;
    let chart = chart(&recording, GanttView::default());
    for (strip, expected) in [
        ("CPU", summary.cpu_ns.unwrap() as f64),
        ("CPU by category", summary.cpu_ns.unwrap() as f64),
        ("New processes", recording.processes().len() as f64 * 1e9),
        (
            "Switches",
            (summary.switches_voluntary.unwrap() + summary.switches_involuntary.unwrap()) as f64
                * 1e9,
        ),
    ] {
        let found = integral(&chart, strip);
        assert!((found / expected - 1.0).abs() < 1e-9, "{strip}: {found} and not {expected}");
    }
    let limit = chart.strips[0].limit.as_ref().unwrap();
    assert_eq!(limit.at, f64::from(recording.header().cpus));
    let options = Options { cores: Some(3), ..Options::default() };
    let asked = gantt(&recording, &GanttView::default(), &options).unwrap();
    assert_eq!(asked.strips[0].limit.as_ref().unwrap().name, "3 cores");
}

#[test]
fn a_subtree_is_a_process_and_its_descendants() {
    let recording = tour();
    let root = recording.depths().iter().position(|depth| *depth == 1).unwrap();
    let is_below = |mut at: usize| loop {
        if at == root {
            return true;
        }
        match recording.processes()[at].parent() {
            Some(parent) => at = parent,
            None => return false,
        }
    };
    let below: BTreeSet<i32> = (0..recording.processes().len())
        .filter(|at| is_below(*at))
        .map(|at| recording.processes()[at].pid)
        .collect();
    let pid = recording.processes()[root].pid.to_string();
    let chart = chart(&recording, GanttView { subtree: Some(pid), ..GanttView::default() });
    assert_eq!(pids(&chart), below.into_iter().collect::<Vec<_>>());
    assert_eq!(chart.left_out_processes as usize, recording.processes().len() - chart.bars.len());
    assert!(chart.bars.iter().filter(|bar| bar.depth == 0).count() == 1);
}

#[test]
fn filters_leave_out_what_they_say() {
    let recording = tour();
    let last_program =
        &recording.program_of(&recording.processes()[recording.processes().len() - 1]).name;
    let only = GanttView { only: vec![last_program.clone()], ..GanttView::default() };
    let expected = recording
        .processes()
        .iter()
        .filter(|process| recording.program_of(process).name == *last_program);
    assert_eq!(chart(&recording, only).bars.len(), expected.count());

    let all = chart(&recording, GanttView::default());
    let (from, until, least) = (all.until_ns / 4, all.until_ns / 2, 3_000_000);
    let view = GanttView {
        from_ns: Some(from),
        until_ns: Some(until),
        min_life_ns: Some(least),
        ..GanttView::default()
    };
    let part = chart(&recording, view);
    let inside = |begin: u64, end: u64| begin <= until && end >= from && end - begin >= least;
    let expected = all.bars.iter().filter(|bar| inside(bar.begin_ns, bar.end_ns)).count();
    assert!(0 < expected && expected < all.bars.len());
    assert_eq!(part.bars.len(), expected);
    assert_eq!((part.from_ns, part.until_ns), (from, until));
    assert!(part.edges_ns[0] <= from && part.edges_ns[part.edges_ns.len() - 1] >= until);
}

#[test]
fn what_is_not_there_cannot_be_shown() {
    let recording = tour();
    let why =
        |view: GanttView| gantt(&recording, &view, &Options::default()).unwrap_err().to_string();
    let only = why(GanttView { only: vec!["nobody".into()], ..GanttView::default() });
    assert!(only.contains("\"nobody\"") && only.contains("the categories are"), "{only}");
    let subtree = why(GanttView { subtree: Some("2000000000".into()), ..GanttView::default() });
    assert!(subtree.contains("no process has this pid"), "{subtree}");
    let window = why(GanttView { from_ns: Some(u64::MAX), ..GanttView::default() });
    assert!(window.contains("the recording covers 0 s to"), "{window}");
}
