//! Tests of budgets, comparisons and verdicts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budgets;
mod common;
mod differences;
mod first_budget;
mod gating;
mod grouping;
mod hostile;
mod names;
mod pypi;
mod regressions;
mod step_limits;
mod steps;
