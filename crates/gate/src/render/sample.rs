//! A report with a finding of each kind, for renderer tests.

use crate::side::RunMetrics;
use crate::{Budget, Options, Report, gate};
use proctrace_findings::{Metric, Metrics};

fn metric(name: &str, labels: &[(&str, &str)], value: f64) -> Metric {
    let labels = labels.iter().map(|(l, v)| ((*l).into(), (*v).into())).collect();
    Metric { name: name.into(), labels, value }
}

fn run(name: &str, metrics: Vec<Metric>) -> RunMetrics {
    RunMetrics {
        name: name.into(),
        metrics: Metrics {
            unknown: Vec::new(),
            command: vec!["sh".into(), "job.sh".into()],
            host: "node1".into(),
            started_unix_ns: 0,
            cores: 2,
            others_percent: None,
            doubts: Vec::new(),
            metrics,
        },
    }
}

const BUDGET: &str = r#"[limits]
total_execs = "5%|5000"
'execs{command="*"}' = { relative_percent = 0, because = "every one is a fork" }
total_cpu_seconds = "10%"
'execs{command="gawk"}' = "|0"
"#;

/// A report about a command of this name, started 600 times more by poll.sh.
pub(crate) fn report(command: &str) -> Report {
    let figures = |count: f64, cpu: f64| {
        vec![
            metric("total_execs", &[], 4600.0 + count),
            metric("total_cpu_seconds", &[], cpu),
            metric("execs", &[("command", command)], count),
            metric("execs", &[("command", "poll.sh")], 1.0),
            metric("spawns", &[("parent", "poll.sh"), ("child", command)], count),
        ]
    };
    let before = [run("before.ptrace", figures(1204.0, 8.0))];
    let after = [run("after.ptrace", figures(1804.0, 9.5))];
    let budget = Budget::parse("gate.toml", BUDGET).unwrap();
    gate(&budget, &before, &after, Options::default()).unwrap()
}
