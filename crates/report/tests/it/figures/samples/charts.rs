//! Samples of all charts with axes, and of flame graphs.

use proctrace_findings::{
    Axis, Bars, Chart, ChartBody, Estimate, Flame, HeatMap, Histogram, IntervalGroup, Intervals,
    Lines, Point, Scatter, Step, Unit, Waterfall,
};

use super::{Sample, mark, noise, series, texts};

pub(super) fn counts() -> Sample {
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

pub(super) fn accounting() -> Sample {
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

pub(super) fn lifetimes() -> Sample {
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

pub(super) fn concurrency() -> Sample {
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

pub(super) fn correlations() -> Sample {
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

pub(super) fn switches() -> Sample {
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

pub(super) fn phases() -> Sample {
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

pub(super) fn stacked_lines() -> Sample {
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

pub(super) fn scaling() -> Sample {
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

pub(super) fn intervals() -> Sample {
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

pub(super) fn waterfall() -> Sample {
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

pub(super) fn flame() -> Sample {
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
