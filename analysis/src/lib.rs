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

mod books;
mod classify;
mod compare;
mod error;
mod events;
mod gantt;
mod load;
mod options;
mod overview;
mod recording;
mod samplers;
mod sections;
mod stats;
#[cfg(test)]
mod testing;

pub use classify::{Program, Rules};
pub use compare::environments::{StartRun, environments};
pub use compare::series::{self, SeriesOptions, SeriesRun, series};
pub use error::AnalysisError;
pub use events::{ATHENA_EVENTS, EventLog, EventPattern, Events, PatternError};
pub use gantt::gantt;
pub use options::{Content, Options};
pub use overview::metrics::metrics;
pub use overview::rule_uses::classification;
pub use recording::Recording;
pub use recording::exit::{End, Exit};
pub use recording::knowledge::says_what_it_needs;
pub use recording::process::{Process, Task};
pub use recording::split::Ticks;
pub use recording::usage::Usage;
pub use sections::Section;
pub use stats::pearson;

use proctrace_findings::{Findings, Health};
use proctrace_trace::Quantity;

/// Everything a report says about a recording.
///
/// # Errors
/// When a table cannot be computed, which would be a fault of this crate.
pub fn analyse(recording: &Recording) -> Result<Findings, AnalysisError> {
    // Two halves of about the same length, neither of which needs anything of the other.
    let (tables, books) = std::thread::scope(|scope| {
        let tables = scope.spawn(|| {
            Ok::<_, AnalysisError>((
                overview::tables::categories(recording)?,
                overview::tables::spawners(recording)?,
                overview::tables::lookups(recording)?,
            ))
        });
        let accounting = books::waits::Accounting::of(recording);
        let summary = overview::summary::summary(recording, &accounting);
        let health = books::laws::health(recording, &accounting);
        let tables = tables.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (tables, (summary, health))
    });
    let (categories, spawners, lookups) = tables?;
    let (summary, health) = books;
    Ok(Findings {
        run: overview::summary::run(recording),
        known: recording.knows.findings(&health.losses),
        health,
        summary,
        categories,
        spawners,
        lookups,
        ends: recording
            .knows
            .some(&[Quantity::Forks, Quantity::Execs], sections::ends::ends(recording)),
        detached: books::detached::detached(recording),
        memory: overview::memory::memory(recording),
        blind_spots: overview::blind_spots::spots(recording),
        correlations: sections::correlations::correlations(recording),
    })
}

/// Whether the recording can be trusted: what was lost or damaged, and the laws.
pub fn health(recording: &Recording) -> Health {
    books::laws::health(recording, &books::waits::Accounting::of(recording))
}
