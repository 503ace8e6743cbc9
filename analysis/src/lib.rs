//! Analysis of a recording: from records to findings.
//!
//! [`Recording::load`] reads a trace into tables; an [`Analysis`] of these provides findings,
//! sections and metrics, and [`gantt`] a chart: all plain data (`proctrace-findings`). Nothing here
//! reads a clock, /proc or the machine it runs on.
//!
//! ```no_run
//! use proctrace_analysis::{Recording, Rules, analyse};
//!
//! let recording = Recording::load("job.ptrace", &Rules::built_in())?;
//! let findings = analyse(&recording);
//! println!("{:?} processes", findings.summary.processes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub use proctrace_advice::{AdviceRules, advise, explain, observed, places};
pub use proctrace_classify::steps::SnakemakeRecord;
pub use proctrace_classify::{LiveClassifier, Program, Rules, RulesError};
pub use proctrace_lookups::{
    Applied, Candidate, Conflict, FarmPlan, Fixes, Kept, Link, ListChange, Machine, MakeView,
    Rewrite, SeenMount, best_of, libs, misses,
};
pub use proctrace_overview::details::{JobRoot, job_root};
pub use proctrace_overview::events::{ATHENA_EVENTS, EventLog, EventPattern, Events, PatternError};
pub use proctrace_overview::options::{Content, Options};
pub use proctrace_overview::requests::together as requests_together;
pub use proctrace_overview::rule_uses::classification;
pub use proctrace_recording::Recording;
pub use proctrace_recording::error::AnalysisError;
pub use proctrace_recording::exit::{End, Exit};
pub use proctrace_recording::live_steps::LiveSteps;
pub use proctrace_recording::process::Process;
pub use proctrace_recording::split::Ticks;
pub use proctrace_recording::task::Task;
pub use proctrace_sections::series::{self, SeriesOptions, SeriesRun, series};
pub use proctrace_sections::{Analysis, Section, StartRun, environments};
pub use proctrace_tables::{
    Answer, Batch, ColumnKind, ColumnSchema, Columnar, ColumnarFile, Query, QueryError, TABLES,
    TableError, TableSchema, TablesQuery, batches, table_markdown, tables_markdown,
};
pub use proctrace_views::{
    AliveSort, AliveView, Chosen, TreeSort, TreeView, Wanted, alive, choose, gantt, page, prmon,
    requests, show, step_graph, steps_used, timeline, timeline_items, tree, workflow,
};

use proctrace_findings::{Findings, Health};

/// All findings about a recording.
pub fn analyse(recording: &Recording) -> Findings {
    Analysis::of(recording).findings()
}

/// Trustworthiness of the recording: losses, damage, and the conservation laws.
pub fn health(recording: &Recording) -> Health {
    recording.health()
}
