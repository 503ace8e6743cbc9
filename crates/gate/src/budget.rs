//! Budgets: rules, each with its limits and source location.

use std::fmt;

use proctrace_findings::Worse;
use serde::Serialize;

use crate::limit::{self, ArgumentError, Limit};
use crate::selector::Selector;

/// The effect of a violated limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It fails the gate.
    #[default]
    Deny,
    /// It is reported, and the gate passes.
    Warn,
}

/// The effect of a result hidden by noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// The gate's verdict is "inconclusive".
    #[default]
    Fail,
    /// It is reported, and the gate passes.
    Warn,
}

/// The effect of a rule that matches no recorded metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// None.
    Allow,
    /// It is reported, and the gate passes.
    #[default]
    Warn,
    /// It fails the gate.
    Deny,
}

/// Place at which a rule is defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In a file.
    File {
        /// Its name as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// On the command line.
    Argument,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, .. } => write!(f, "{file}:{line}"),
            Self::Argument => f.write_str("--limit"),
        }
    }
}

/// A selector with its limit and the effects of violating it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The metrics it applies to.
    pub selector: Selector,
    /// The limit.
    pub limit: Limit,
    /// Changes from the baseline smaller than this pass; in the metric's unit.
    pub min_change: Option<f64>,
    /// Minimum number of runs for a violation of the absolute limit; fewer are inconclusive.
    pub min_runs: Option<usize>,
    /// The direction that is worse, if it differs from the family's.
    pub worse: Option<Worse>,
    /// The effect of a violation.
    pub severity: Severity,
    /// The effect of noise hiding the result.
    pub inconclusive: Inconclusive,
    /// The effect of matching no metric.
    pub unmatched: Unmatched,
    /// The author's reason for the rule.
    pub because: Option<String>,
    /// Place at which it is defined.
    pub origin: Origin,
}

impl fmt::Display for Rule {
    /// Text in `--limit` notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.selector, self.limit)
    }
}

/// Default settings of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Defaults {
    /// The effect of a violation.
    pub severity: Severity,
    /// The effect of noise hiding the result.
    pub inconclusive: Inconclusive,
    /// The effect of a rule that matches no metric.
    pub unmatched: Unmatched,
}

/// Rules in order. The last rule that selects a metric decides, so that patterns come before their
/// exceptions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// Applied to rules that are added later.
    pub defaults: Defaults,
    /// Rules in source order.
    pub rules: Vec<Rule>,
}

impl Budget {
    /// Adds a rule from a `--limit` argument: `execs{command="sed"}=0%|500`.
    ///
    /// # Errors
    ///
    /// For any syntax error, with its column.
    pub fn push_argument(&mut self, text: &str) -> Result<(), ArgumentError> {
        let (selector, limit) = limit::argument(text)?;
        self.rules.push(Rule {
            selector,
            limit,
            min_change: None,
            min_runs: None,
            worse: None,
            severity: self.defaults.severity,
            inconclusive: self.defaults.inconclusive,
            unmatched: self.defaults.unmatched,
            because: None,
            origin: Origin::Argument,
        });
        Ok(())
    }

    /// The first rule that has no effect without a baseline.
    pub fn needs_baseline(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.limit.absolute.is_none())
    }
}

/// An invalid budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct BudgetError {
    /// The file name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem, and the correct form.
    pub message: String,
}
