//! Sections of a report and metrics of a recording, and comparisons of several recordings.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod analysis;
mod compare;
mod metrics;
mod samplers;
mod sections;
mod shares;

pub use analysis::Analysis;
pub use compare::environments::{StartRun, environments};
pub use compare::series::{self, SeriesOptions, SeriesRun, series};
pub use sections::Section;
