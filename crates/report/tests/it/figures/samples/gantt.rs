//! Samples of Gantt charts, of any number of processes.

use proctrace_findings::{
    Bar, Chart, ChartBody, Gantt, GanttOrder, GanttView, Lane, PathPiece, Strip, Unit,
};

use super::{Sample, mark, noise, series, texts};

/// A chart of `bars` processes: a driver, tasks below it, and short commands below those.
pub(super) fn gantt(name: &'static str, bars: usize, order: GanttOrder, threads: bool) -> Sample {
    let until_ns = 600_000_000_000_u64;
    let at_time = |part: f64| (until_ns as f64 * part) as u64;
    let tasks = 6.min(bars / 10);
    let first = Bar {
        lane: 1,
        name: 0,
        pid: 4_100,
        begin_ns: 0,
        end_ns: until_ns,
        depth: 0,
        parent: None,
        is_thread: false,
    };
    let mut all = vec![first];
    for task in 0..tasks {
        let begin = task as f64 / (tasks + 2) as f64;
        let parent = all.len() as u32;
        all.push(Bar {
            name: 1,
            pid: 4_101 + task as i32,
            begin_ns: at_time(begin),
            end_ns: at_time(begin + 0.3),
            depth: 1,
            parent: Some(0),
            ..first
        });
        let children = (bars - 1 - tasks) / tasks;
        for child in 0..children {
            let start = begin + 0.29 * child as f64 / children as f64;
            let length = 0.000_02 + 0.02 * noise(child).powi(12);
            let kind = (noise(child + 77) * 3.0) as u32;
            let is_thread = threads && child % 11 == 0;
            all.push(Bar {
                lane: [0, 0, 2][kind as usize],
                name: 2 + kind,
                pid: 5_000 + child as i32,
                begin_ns: at_time(start),
                end_ns: at_time(start + length).min(until_ns),
                depth: 2,
                parent: Some(parent),
                is_thread,
            });
        }
    }
    if order == GanttOrder::Time {
        all.iter_mut().for_each(|bar| bar.parent = None);
        all.sort_by_key(|bar| bar.begin_ns);
    }
    // From task to task, and in between in the first process.
    let path = (0..tasks as u32)
        .map(|task| {
            let bar = 1 + task * (all.len() / tasks) as u32;
            let of = &all[bar as usize];
            let end_ns = of.end_ns.min(of.begin_ns + until_ns / tasks as u64);
            PathPiece { bar, begin_ns: of.begin_ns, end_ns }
        })
        .collect();
    let lane = |at: u32, name: &str| Lane {
        name: name.into(),
        processes: all.iter().filter(|bar| bar.lane == at && !bar.is_thread).count() as u64,
        threads: all.iter().filter(|bar| bar.lane == at && bar.is_thread).count() as u64,
        is_rest: false,
    };
    let lanes = vec![lane(0, "text"), lane(1, "O2"), lane(2, "process")];
    let bins = 500;
    let wave = |height: f64, shift: usize| {
        (0..bins).map(move |at| {
            height * (1.0 + (at as f64 / 40.0).sin()) * (0.6 + 0.4 * noise(at + shift))
        })
    };
    let strip = |title: &str, unit, series| Strip {
        title: title.into(),
        unit,
        series,
        by_lane: false,
        limit: None,
    };
    let cores = Some(mark(8.0, "8 cores"));
    let by_lane = |height: f64| {
        vec![
            series("text", wave(height, 1)),
            series("O2", wave(2.0 * height, 2)),
            series("process", wave(height / 2.0, 3)),
        ]
    };
    let gantt = Gantt {
        title: "run-simulation.sh --events 100 --workers 8".into(),
        view: GanttView {
            order,
            threads,
            min_life_ns: threads.then_some(10_000),
            ..GanttView::default()
        },
        left_out_processes: if threads { 1_234 } else { 0 },
        left_out_threads: 0,
        from_ns: 0,
        until_ns,
        lanes,
        names: texts([
            "o2_dpg_workflow_runner.py",
            "o2-sim-digitizer-workflow",
            "grep",
            "sed",
            "ps",
        ]),
        bars: all,
        path,
        marks: vec![
            mark(until_ns as f64 * 0.12, "geometry & fields are loaded"),
            mark(until_ns as f64 * 0.14, "simulation"),
            mark(until_ns as f64 * 0.7, "digitization"),
        ],
        edges_ns: (0..=bins).map(|at| until_ns / bins as u64 * at as u64).collect(),
        strips: vec![
            Strip {
                limit: cores.clone(),
                ..strip(
                    "CPU",
                    Unit::Cores,
                    vec![series("user", wave(3.6, 5)), series("system", wave(1.1, 6))],
                )
            },
            Strip {
                limit: cores,
                by_lane: true,
                ..strip("CPU by category", Unit::Cores, by_lane(1.35))
            },
            strip(
                "Tasks",
                Unit::Count,
                vec![
                    series("running or runnable", wave(9.0, 7)),
                    series("uninterruptible", wave(0.4, 8)),
                ],
            ),
            Strip { by_lane: true, ..strip("New processes", Unit::PerSecond, by_lane(60.0)) },
            strip(
                "Switches",
                Unit::PerSecond,
                vec![
                    series("voluntary", wave(14_000.0, 9)),
                    series("involuntary", wave(2_000.0, 10)),
                ],
            ),
            strip(
                "Storage per second",
                Unit::Bytes,
                vec![series("read", wave(9e7, 11)), series("written", wave(4e7, 12))],
            ),
        ],
    };
    let mut expected = texts([
        "8 cores",
        "above this limit",
        "on the critical path",
        "user",
        "Storage per second (MB)",
        "New processes (per second)",
    ]);
    if order != GanttOrder::Category {
        expected.push("o2_dpg_workflow_runner.py 4100".into());
    }
    let chart = Chart::new("gantt", "Every process", ChartBody::Gantt(Box::new(gantt)));
    (name, chart, expected)
}
