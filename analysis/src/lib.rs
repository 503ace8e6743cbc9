//! From a recording to findings.
//!
//! [`Recording::load`] reads a trace into tables; [`analyse`] and [`gantt`] are pure functions
//! from those to plain data (`proctrace-findings`). Nothing here looks at a clock, at /proc or at
//! the machine it runs on.
//!
//! ```no_run
//! use proctrace_analysis::{Recording, Rules, analyse};
//!
//! let recording = Recording::load("job.ptrace", &Rules::built_in())?;
//! let findings = analyse(&recording)?;
//! println!("{:?} processes", findings.summary.processes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounting;
mod amdahl;
mod ancestry;
mod bins;
mod blind;
mod classification;
mod classify;
mod concurrency;
mod correlate;
mod counts;
mod course;
mod cpu;
mod detached;
mod ends;
mod environments;
mod error;
mod events;
mod exit;
mod fast;
mod gantt;
mod knowledge;
mod labels;
mod laws;
mod lifetimes;
mod load;
mod loading;
mod membership;
mod memory;
mod methods;
mod metrics;
mod names;
mod options;
mod paired;
mod pool;
mod process;
mod recording;
mod samplers;
mod sections;
mod serials;
pub mod series;
mod spawners;
mod split;
mod spots;
mod startup;
mod states;
mod stats;
mod summary;
mod switches;
mod tables;
mod tally;
mod template;
#[cfg(test)]
mod testing;
mod tracks;
mod usage;
mod watch;

pub use classification::classification;
pub use classify::{Program, Rules};
pub use environments::{StartRun, environments};
pub use error::AnalysisError;
pub use events::{ATHENA_EVENTS, EventLog, EventPattern, Events, PatternError};
pub use exit::{End, Exit};
pub use gantt::gantt;
pub use knowledge::says_what_it_needs;
pub use metrics::metrics;
pub use options::{Content, Options};
pub use process::{Process, Task};
pub use recording::Recording;
pub use sections::Section;
pub use series::{SeriesOptions, SeriesRun, series};
pub use split::Ticks;
pub use stats::pearson;
pub use usage::Usage;

use proctrace_findings::{Findings, Health};
use proctrace_trace::Quantity;

/// Everything a report says about a recording.
///
/// # Errors
/// When a table cannot be computed, which would be a fault of this crate.
pub fn analyse(recording: &Recording) -> Result<Findings, AnalysisError> {
    let accounting = accounting::Accounting::of(recording);
    let summary = summary::summary(recording, &accounting);
    let health = laws::health(recording, &accounting);
    Ok(Findings {
        run: summary::run(recording),
        known: recording.knows.findings(&health.losses),
        health,
        summary,
        categories: tables::categories(recording)?,
        spawners: tables::spawners(recording)?,
        lookups: tables::lookups(recording)?,
        ends: recording.knows.some(&[Quantity::Forks, Quantity::Execs], ends::ends(recording)),
        detached: detached::detached(recording),
        memory: memory::memory(recording),
        blind_spots: spots::spots(recording),
        correlations: correlate::correlations(recording),
    })
}

/// Whether the recording can be trusted: what was lost or damaged, and the laws.
pub fn health(recording: &Recording) -> Health {
    laws::health(recording, &accounting::Accounting::of(recording))
}
