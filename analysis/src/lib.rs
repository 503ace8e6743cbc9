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
//! let findings = analyse(&recording)?;
//! println!("{:?} processes", findings.summary.processes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advice;
mod analysis;
mod books;
mod classify;
mod compare;
mod details;
mod error;
mod events;
mod figures;
mod gantt;
mod inspect;
mod libs;
mod load;
mod options;
mod overview;
mod page;
mod path;
mod prmon;
mod recording;
mod samplers;
mod sections;
mod shares;
mod tables;
#[cfg(test)]
mod testing;
mod timeline;

pub use advice::{AdviceRules, advise, explain, observed, places};
pub use analysis::Analysis;
pub use classify::{LiveClassifier, Program, Rules};
pub use compare::environments::{StartRun, environments};
pub use compare::series::{self, SeriesOptions, SeriesRun, series};
pub use details::{JobRoot, job_root};
pub use error::AnalysisError;
pub use events::{ATHENA_EVENTS, EventLog, EventPattern, Events, PatternError};
pub use gantt::gantt;
pub use inspect::{
    AliveSort, AliveView, Chosen, TreeSort, TreeView, Wanted, alive, choose, show, tree,
};
pub use libs::{
    Applied, Candidate, Conflict, FarmPlan, Fixes, Kept, Link, ListChange, Machine, MakeView,
    Rewrite, SeenMount, best_of, libs, misses,
};
pub use options::{Content, Options};
pub use overview::rule_uses::classification;
pub use page::page;
pub use prmon::prmon;
pub use recording::Recording;
pub use recording::exit::{End, Exit};
pub use recording::knowledge::says_what_it_needs;
pub use recording::process::{Process, Task};
pub use recording::split::Ticks;
pub use recording::usage::Usage;
pub use sections::Section;
pub use tables::{
    Answer, Batch, ColumnKind, ColumnSchema, Columnar, ColumnarFile, Query, QueryError, TABLES,
    TableSchema, TablesQuery, batches, table_markdown, tables_markdown,
};
pub use timeline::{timeline, timeline_items};

use proctrace_findings::{Findings, Health};

/// All findings about a recording.
///
/// # Errors
/// If a table cannot be computed, which would be a bug in this crate.
pub fn analyse(recording: &Recording) -> Result<Findings, AnalysisError> {
    Analysis::of(recording).findings()
}

/// Trustworthiness of the recording: losses, damage, and the conservation laws.
pub fn health(recording: &Recording) -> Health {
    Analysis::of(recording).health()
}
