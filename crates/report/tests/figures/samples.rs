//! Synthetic data as supplied by the sections of a report.

use proctrace_findings::{
    Axis, Bar, Bars, Chart, ChartBody, Estimate, Flame, Gantt, GanttOrder, GanttView, HeatMap,
    Histogram, IntervalGroup, Intervals, Lane, Lines, Mark, PathPiece, Point, Scatter, Series,
    Step, Strip, Unit, Waterfall,
};

/// A figure, its name, and texts that it must contain.
type Sample = (&'static str, Chart, Vec<String>);

fn series(name: &str, values: impl IntoIterator<Item = f64>) -> Series {
    Series { name: name.into(), values: values.into_iter().map(Some).collect() }
}

fn mark(at: f64, name: &str) -> Mark {
    Mark { at, name: name.into() }
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(String::from).into()
}

/// A deterministic pseudo-random sequence (SplitMix64).
fn noise(at: usize) -> f64 {
    let mut bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 40) as f64 / (1_u64 << 24) as f64
}

pub(crate) fn all() -> Vec<Sample> {
    vec![
        counts(),
        accounting(),
        lifetimes(),
        concurrency(),
        correlations(),
        switches(),
        phases(),
        stacked_lines(),
        scaling(),
        waterfall(),
        intervals(),
        flame(),
        gantt("gantt-60", 60, GanttOrder::Tree, true),
        gantt("gantt-5000", 5_000, GanttOrder::Time, false),
        gantt("gantt-5000-tree", 5_000, GanttOrder::Tree, true),
        gantt("gantt-70000", 70_000, GanttOrder::Time, false),
        gantt("gantt-70000-category", 70_000, GanttOrder::Category, false),
    ]
}

/// Every kind of figure, with this name used throughout.
pub(crate) fn named(name: &str) -> Vec<(&'static str, Chart)> {
    let mut all = all();
    for (_, chart, _) in &mut all {
        chart.title = name.to_owned();
        chart.notes = vec![name.to_owned()];
        let rename = |text: &mut String| *text = name.to_owned();
        let rename_series =
            |all: &mut Vec<Series>| all.iter_mut().for_each(|s| rename(&mut s.name));
        let rename_marks =
            |all: &mut Vec<Mark>| all.iter_mut().for_each(|mark| rename(&mut mark.name));
        match &mut chart.body {
            ChartBody::Bars(bars) => {
                bars.rows.iter_mut().for_each(rename);
                rename(&mut bars.axis.title);
                rename_series(&mut bars.series);
            }
            ChartBody::Lines(lines) => {
                rename(&mut lines.x_axis.title);
                rename(&mut lines.y_axis.title);
                rename_series(&mut lines.series);
                rename_marks(&mut lines.marks);
                rename_marks(&mut lines.moments);
            }
            ChartBody::Histogram(histogram) => {
                rename(&mut histogram.axis.title);
                rename_series(&mut histogram.series);
                rename_marks(&mut histogram.marks);
            }
            ChartBody::HeatMap(map) => map.names.iter_mut().for_each(rename),
            ChartBody::Scatter(scatter) => {
                scatter.points.iter_mut().for_each(|point| rename(&mut point.name));
            }
            ChartBody::Flame(flame) => {
                rename(&mut flame.weighs);
                flame.folded = vec![format!("{name};{name} 3"), format!("{name} 1")];
            }
            ChartBody::Intervals(intervals) => {
                for group in &mut intervals.groups {
                    rename(&mut group.name);
                    group.estimates.iter_mut().for_each(|estimate| rename(&mut estimate.name));
                }
            }
            ChartBody::Waterfall(waterfall) => {
                rename(&mut waterfall.start.name);
                rename(&mut waterfall.end.name);
                waterfall.steps.iter_mut().for_each(|step| rename(&mut step.name));
            }
            ChartBody::Gantt(gantt) => {
                rename(&mut gantt.title);
                gantt.names.iter_mut().for_each(rename);
                gantt.lanes.iter_mut().for_each(|lane| rename(&mut lane.name));
                gantt.view.subtree = Some(name.to_owned());
                for strip in &mut gantt.strips {
                    rename(&mut strip.title);
                    rename_series(&mut strip.series);
                    strip.limit.iter_mut().for_each(|limit| rename(&mut limit.name));
                }
            }
        }
    }
    all.into_iter().map(|(kind, chart, _)| (kind, chart)).collect()
}

fn counts() -> Sample {
    let rows = texts([
        "text: sed, grep, awk",
        "shell",
        "O2 devices",
        "O2 workflow runner",
        "process",
        "file",
        "interpreter",
        "info",
        "compiler",
        "network",
        "monitoring",
        "something else",
    ]);
    let processes =
        [38_250.0, 12_900.0, 3_120.0, 1.0, 9_800.0, 4_410.0, 210.0, 96.0, 14.0, 3.0, 2_050.0, 7.0];
    let threads = [0.0, 0.0, 18_400.0, 6.0, 0.0, 0.0, 320.0, 0.0, 12.0, 9.0, 41.0, 0.0];
    let mut expected = rows.clone();
    expected.extend(texts(["processes", "threads", "38,250", "18,400", "10,000", "count"]));
    let body = ChartBody::Bars(Bars {
        rows,
        axis: Axis::logarithmic("count", Unit::Count),
        series: vec![series("processes", processes), series("threads", threads)],
        stacked: false,
    });
    let chart = Chart::new("counts", "Processes and threads by category", body).note(
        "n = 70,861 processes, 18,788 threads. Those without exec count as their parent's program.",
    );
    ("counts", chart, expected)
}

fn accounting() -> Sample {
    let rows = texts([
        "exact",
        "time(1) of the command",
        "prmon-like, every 1 s",
        "prmon-like, every 30 s",
        "ps-like, every 30 s",
    ]);
    let mut expected = rows.clone();
    expected.extend(texts(["user", "system", "CPU time (min)", "2 h 05 min"]));
    let user = [5.1e12, 4.9e12, 4.4e12, 3.2e12, 2.9e12];
    let system = [2.4e12, 2.2e12, 1.1e12, 0.4e12, 0.3e12];
    let missing = [0.0, 0.4e12, 2.0e12, 3.9e12, 4.3e12];
    let body = ChartBody::Bars(Bars {
        rows,
        axis: Axis::linear("CPU time", Unit::Nanoseconds),
        series: vec![series("user", user), series("system", system), series("missing", missing)],
        stacked: true,
    });
    ("accounting", Chart::new("accounting", "CPU time by accounting method", body), expected)
}

fn lifetimes() -> Sample {
    let edges: Vec<f64> = (0..=56).map(|at| 1e5 * 10_f64.powf(f64::from(at) / 8.0)).collect();
    let bell = |middle: f64, height: f64| {
        (0..56).map(move |at| (height * (-(f64::from(at) - middle).powi(2) / 40.0).exp()).round())
    };
    let body = ChartBody::Histogram(Histogram {
        axis: Axis::logarithmic("life time", Unit::Nanoseconds),
        count_axis: Axis::linear("processes", Unit::Count),
        edges,
        series: vec![
            series("commands", bell(12.0, 9_000.0)),
            series("programs", bell(30.0, 1_500.0)),
        ],
        marks: vec![
            mark(1e9, "1 s: 91 % of processes, 12 % of CPU"),
            mark(5e9, "5 s: 96 %, 20 %"),
            mark(3e10, "30 s: 99 %, 41 %"),
        ],
    });
    let chart = Chart::new("lifetimes", "Process lifetimes", body)
        .note("A sampler may miss processes that live shorter than its interval.");
    let expected = texts([
        "1 ms",
        "100 ms",
        "10 s",
        "1 s: 91 % of processes, 12 % of CPU",
        "5 s: 96 %, 20 %",
        "life time",
        "commands",
        "programs",
    ]);
    ("lifetimes", chart, expected)
}

fn concurrency() -> Sample {
    let body = ChartBody::Histogram(Histogram {
        axis: Axis::linear("tasks running or runnable", Unit::Count),
        count_axis: Axis::linear("share of the time", Unit::Percent),
        edges: (0..=17).map(f64::from).collect(),
        series: vec![series("time", (0..17).map(|n| 100.0 * 0.5_f64.powi(n + 1)))],
        marks: vec![mark(8.0, "8 cores")],
    });
    let chart = Chart::new("concurrency", "Simultaneously running tasks", body);
    ("concurrency", chart, texts(["8 cores", "tasks running or runnable", "10"]))
}

fn correlations() -> Sample {
    let names = texts([
        "system CPU",
        "user CPU",
        "forks",
        "execs",
        "exits",
        "voluntary switches",
        "involuntary switches",
        "running tasks",
        "live tasks",
        "bytes read",
        "bytes written",
        "failed look-ups",
    ]);
    let n = names.len();
    let r = |a: usize, b: usize| match a == b {
        true => Some(1.0),
        false if a.max(b) == 9 => None,
        false => Some((2.0 * noise(a.min(b) * n + a.max(b)) - 1.0).clamp(-1.0, 1.0)),
    };
    let values = (0..n).map(|a| (0..n).map(|b| r(a, b)).collect()).collect();
    let mut expected = names.clone();
    expected.push("1.00".into());
    let body = ChartBody::HeatMap(HeatMap { names, values });
    let chart = Chart::new("correlations", "Correlations over time (Pearson's r)", body)
        .note("n = 955 bins of 100 ms; effective n between 61 and 402.");
    ("correlations", chart, expected)
}

fn switches() -> Sample {
    let programs = [
        "o2-sim",
        "sed",
        "grep",
        "awk",
        "bash",
        "python3",
        "root.exe",
        "ps",
        "o2-tpc-reco-workflow",
    ];
    let points: Vec<Point> = (0..120)
        .map(|at| Point {
            x: 10_f64.powf(6.0 * noise(at) - 2.0),
            y: 100.0 * noise(at + 500),
            weight: noise(at + 900).powi(8),
            name: format!("{} {at}", programs[at % programs.len()]),
        })
        .collect();
    let body = ChartBody::Scatter(Scatter {
        x_axis: Axis::logarithmic("voluntary over involuntary switches", Unit::Ratio),
        y_axis: Axis::linear("CPU efficiency", Unit::Percent),
        points,
    });
    let chart = Chart::new("switches", "Voluntary and involuntary switches by program", body)
        .note("Size: CPU time. The largest are labelled where there is room.");
    ("switches", chart, texts(["CPU efficiency (%)", "voluntary over involuntary switches", "100"]))
}

fn phases() -> Sample {
    let x: Vec<f64> = (0..3_000).map(|at| f64::from(at) * 1e8).collect();
    let level = |at: usize| match at {
        600..2_600 => 8.0,
        2_600..2_800 => 3.0,
        _ => 1.0,
    };
    let cpu: Vec<f64> = (0..3_000).map(|at| level(at) * (0.9 + 0.2 * noise(at))).collect();
    let body = ChartBody::Lines(Lines {
        x_axis: Axis::linear("time since the start", Unit::Nanoseconds),
        y_axis: Axis::linear("CPU", Unit::Cores),
        x,
        series: vec![series("busy", cpu)],
        stacked: false,
        points: false,
        marks: vec![mark(8.0, "8 cores asked for")],
        moments: vec![
            mark(60e9, "initialisation ends"),
            mark(62e9, "first event"),
            mark(260e9, "first worker ends"),
            mark(280e9, "tail ends"),
            mark(295e9, "merge ends"),
        ],
    });
    let chart = Chart::new("phases", "Phases of the pool of workers", body);
    let expected = texts([
        "8 cores asked for",
        "initialisation ends",
        "first event",
        "merge ends",
        "CPU (cores)",
    ]);
    ("phases", chart, expected)
}

fn stacked_lines() -> Sample {
    let x: Vec<f64> = (0..90).map(|at| f64::from(at) * 5e9).collect();
    let grown =
        |scale: f64| (0..90).map(move |at: i32| scale * (1.0 - (-f64::from(at) / 15.0).exp()));
    let body = ChartBody::Lines(Lines {
        x_axis: Axis::linear("time since the start", Unit::Nanoseconds),
        y_axis: Axis::linear("memory", Unit::Bytes),
        x,
        series: vec![
            series("own", grown(4.2e9)),
            series("shared", grown(9.7e9)),
            series("swapped", grown(3e8)),
        ],
        stacked: true,
        points: false,
        marks: vec![mark(16e9, "limit: 2 GB for each of 8 cores")],
        moments: vec![mark(400e9, "finalisation")],
    });
    let chart = Chart::new("memory", "Memory of all workers", body);
    (
        "memory",
        chart,
        texts([
            "own",
            "shared",
            "swapped",
            "memory (GB)",
            "time since the start (min)",
            "finalisation",
        ]),
    )
}

fn scaling() -> Sample {
    let x: Vec<f64> = (0..8).map(|at| f64::from(1 << at)).collect();
    let falling = |start: f64, loss: f64| {
        (0..8).map(move |at| start * (1.0 - loss * f64::from(at * at) / 64.0))
    };
    let body = ChartBody::Lines(Lines {
        x_axis: Axis::logarithmic("threads", Unit::Count),
        y_axis: Axis::linear("events per second and thread", Unit::PerSecond),
        x,
        series: vec![
            series("all input and output", falling(0.21, 0.8)),
            series("no output", falling(0.22, 0.5)),
            series("input from memory", falling(0.225, 0.1)),
        ],
        stacked: false,
        points: true,
        marks: vec![mark(0.225, "ideal")],
        moments: Vec::new(),
    });
    let chart = Chart::new("scaling", "Throughput of each thread", body);
    ("scaling", chart, texts(["1", "2", "16", "128", "ideal", "threads", "no output"]))
}

fn intervals() -> Sample {
    let tracers = [
        ("proctrace", 1.04, 0.99, 1.09, true),
        ("raw ftrace", 1.02, 0.97, 1.1, false),
        ("perf record", 1.28, 1.15, 1.39, false),
        ("strace seccomp", 11.1, 10.7, 11.6, true),
    ];
    let payloads = ["spawn /bin/true", "fork without exec", "threads", "failed opens", "computing"];
    let groups = payloads.iter().enumerate().map(|(at, name)| IntervalGroup {
        name: (*name).to_owned(),
        noise: Some((0.95, 1.05)),
        estimates: tracers
            .iter()
            .map(|(name, value, low, high, comparable)| Estimate {
                name: (*name).to_owned(),
                value: value + at as f64 / 10.0,
                low: low + at as f64 / 10.0,
                high: high + at as f64 / 10.0,
                comparable: *comparable,
            })
            .collect(),
    });
    let body = ChartBody::Intervals(Intervals {
        axis: Axis::logarithmic("multiple of the bare run", Unit::Ratio),
        reference: Some(1.0),
        groups: groups.collect(),
    });
    let chart = Chart::new("intervals", "Wall time of the payload", body)
        .note("Hollow: misses some events. Grey: a bare run against another.");
    (
        "intervals",
        chart,
        texts(["spawn /bin/true", "computing", "strace seccomp", "1.04", "11.1", "10"]),
    )
}

fn waterfall() -> Sample {
    let steps = [
        ("text: sed, grep, awk", -28_400.0),
        ("process: ps, pgrep, sleep", -6_900.0),
        ("O2 devices", -720.0),
        ("shell", -1_100.0),
        ("file: tail", 310.0),
        ("others", 2_610.0),
    ];
    let body = ChartBody::Waterfall(Waterfall {
        axis: Axis::linear("processes", Unit::Count),
        start: mark(72_500.0, "before"),
        steps: steps.map(|(name, change)| Step { name: name.into(), change }).into(),
        end: mark(38_300.0, "after"),
    });
    let chart = Chart::new("waterfall", "Processes before and after", body);
    (
        "waterfall",
        chart,
        texts(["before", "after", "72,500", "38,300", "−28,400", "+310", "O2 devices"]),
    )
}

fn flame() -> Sample {
    let mut folded = vec!["job.sh;o2-sim 1".to_owned(), "job.sh;o2-sim;o2-sim 8".to_owned()];
    for task in ["tpcreco", "itsreco", "matching"] {
        for (command, weight) in
            [("grep", 2_000), ("ps", 1_000), ("sed", 900), ("awk", 850), ("sleep", 700), ("bc", 3)]
        {
            folded.push(format!("job.sh;runner.py;sh -c {task};taskwrapper;{command} {weight}"));
        }
        folded.push(format!(
            "job.sh;runner.py;sh -c {task};o2-{task}-workflow;o2-{task}-workflow --id 40"
        ));
    }
    let body = ChartBody::Flame(Flame { weighs: "processes".into(), folded });
    let chart = Chart::new("ancestry", "Process ancestry", body);
    (
        "ancestry",
        chart,
        texts(["job.sh", "runner.py", "taskwrapper", "grep", "all: 16,488 processes, 100 %"]),
    )
}

/// A chart of `bars` processes: a driver, tasks below it, and short commands below those.
fn gantt(name: &'static str, bars: usize, order: GanttOrder, threads: bool) -> Sample {
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
