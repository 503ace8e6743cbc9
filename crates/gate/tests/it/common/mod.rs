//! Metrics for tests.

use proctrace_findings::{Metric, Metrics};
use proctrace_gate::RunMetrics;

/// A metric.
pub(crate) fn metric(name: &str, labels: &[(&str, &str)], value: f64) -> Metric {
    let labels = labels.iter().map(|(label, value)| ((*label).into(), (*value).into())).collect();
    Metric { name: name.into(), labels, value }
}

/// A recording with these metrics.
pub(crate) fn run(name: &str, metrics: Vec<Metric>) -> RunMetrics {
    RunMetrics {
        name: name.into(),
        metrics: Metrics {
            unknown: Vec::new(),
            command: vec!["sh".into(), "job.sh".into()],
            host: "node1".into(),
            started_unix_ns: 1_795_000_000_000_000_000,
            cores: 2,
            others_percent: None,
            doubts: Vec::new(),
            metrics,
        },
    }
}

/// A job of a polling shell script with `ticks` iterations and the given number of search
/// directories.
pub(crate) fn job(name: &str, ticks: f64, seds: f64, directories: usize, cpu: f64) -> RunMetrics {
    let sed = ticks * seds;
    let paths: Vec<String> = (0..directories).map(|n| format!("/opt/lib{n}")).collect();
    let misses = (sed + ticks) * 10.0;
    let mut metrics = vec![
        metric("total_processes", &[], 2.0 + sed + ticks),
        metric("total_execs", &[], 2.0 + sed + ticks),
        metric("total_threads", &[], 4.0),
        metric("total_failed_lookups", &[], misses * directories as f64),
        metric("total_cpu_seconds", &[], cpu),
        metric("wall_seconds", &[], cpu * 2.0),
        metric("peak_rss_bytes", &[], 1.2e7),
        metric("processes", &[("category", "text")], sed),
        metric("execs", &[("command", "sed")], sed),
        metric("execs", &[("command", "ps")], ticks),
        metric("command_processes", &[("command", "sed")], sed),
        metric("command_processes", &[("command", "ps")], ticks),
        metric("command_processes", &[("command", "job.sh")], 2.0),
        metric("command_cpu_seconds", &[("command", "sed")], cpu / 2.0),
        metric("command_cpu_seconds", &[("command", "ps")], cpu / 4.0),
        metric("failed_lookups", &[("kind", "open")], misses * directories as f64),
        metric("spawns", &[("parent", "poll.sh"), ("child", "sed")], sed),
        metric("spawns", &[("parent", "job.sh"), ("child", "ps")], ticks),
    ];
    metrics.extend(paths.iter().map(|path| {
        metric("directory_failed_lookups", &[("directory", path), ("kind", "open")], misses)
    }));
    run(name, metrics)
}
