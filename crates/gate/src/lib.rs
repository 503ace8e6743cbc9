//! Budgets, comparisons and verdicts: everything that is made of the figures of recordings, and
//! needs nothing but them. Pure functions: text and figures go in, text and findings come out.
//!
//! A [`Budget`] is read from TOML and from `--limit` arguments. [`gate`] compares the figures of
//! some recordings with its limits, and with those of baselines, and gives a [`Report`], which
//! [`render`] writes for terminals, CI systems and programs; findings with the same cause are one
//! [`Group`]. [`Diff`] is the comparison of two
//! sides without a budget.
//!
//! ```
//! use proctrace_findings::{Metric, Metrics};
//! use proctrace_gate::{Budget, Diff, Options, RunMetrics, Verdict, explain, gate, render};
//!
//! let run = |name: &str, execs: f64| RunMetrics {
//!     name: name.into(),
//!     metrics: Metrics {
//!         command: vec!["job.sh".into()],
//!         host: "node1".into(),
//!         started_unix_ns: 0,
//!         cores: 2,
//!         others_percent: None,
//!         doubts: vec![],
//!         unknown: vec![],
//!         metrics: vec![
//!             Metric { name: "total_execs".into(), labels: vec![], value: execs },
//!             Metric {
//!                 name: "execs".into(),
//!                 labels: vec![("command".into(), "sed".into())],
//!                 value: execs - 1.0,
//!             },
//!         ],
//!     },
//! };
//! let (before, after) = ([run("before.ptrace", 101.0)], [run("after.ptrace", 201.0)]);
//!
//! let mut budget = Budget::parse("gate.toml", "[limits]\ntotal_execs = '5%|500'\n")?;
//! budget.push_argument(r#"execs{command="s*"}=0%"#)?;
//! let report = gate(&budget, &before, &after, Options::default())?;
//! assert_eq!(report.verdict, Verdict::Regression);
//! assert_eq!(report.verdict.exit_code(), 3);
//! assert!(render::text(&report, 20).contains("+100 sed: 101 -> 201 execs"));
//! assert!(explain(report.findings[0].code).starts_with("PT001"));
//!
//! let diff = Diff::of(&before, &after)?;
//! assert_eq!(diff.row("total_execs").and_then(|row| row.numbers?.change), Some(100.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod budget;
mod budget_file;
mod cause;
mod code;
mod compare;
mod contributors;
mod diff;
mod diff_tables;
mod explain;
mod group;
mod growth;
mod init;
mod judge;
mod limit;
pub mod metrics_file;
mod numbers;
mod openmetrics;
mod pattern;
mod renames;
pub mod render;
mod selector;
mod side;
mod sources;
mod suggest;
mod unknown;
mod verdict;
mod words;

pub use budget::{Budget, BudgetError, Defaults, Inconclusive, Origin, Rule, Severity, Unmatched};
pub use code::Code;
pub use compare::{GateError, Options, gate};
pub use diff::{
    CommandChange, Diff, DiffError, DirectoryChange, Fate, PhaseChange, Rename, Row, SpawnChange,
    StepChange,
};
pub use explain::explain;
pub use init::{Variation, init};
pub use limit::{ArgumentError, Limit, LimitError};
pub use numbers::{Numbers, Sample};
pub use openmetrics::{PREFIX, openmetrics};
pub use selector::{Selector, SelectorError};
pub use side::RunMetrics;
pub use verdict::{
    Cause, CauseKind, Check, Contributor, Effect, Finding, Group, GroupAdvice, Report, RuleInfo,
    Status, Verdict,
};
