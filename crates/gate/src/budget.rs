//! What a payload may cost: rules, each with its limits and where it was written.

use std::fmt;

use proctrace_findings::Worse;
use serde::Serialize;

use crate::limit::{self, ArgumentError, Limit};
use crate::selector::Selector;

/// What a broken limit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It fails the gate.
    #[default]
    Deny,
    /// It is said, and the gate passes.
    Warn,
}

/// What it means that noise hides the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// The gate's verdict is "inconclusive".
    #[default]
    Fail,
    /// It is said, and the gate passes.
    Warn,
}

/// What it means that a rule is about nothing that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// Nothing.
    Allow,
    /// It is said, and the gate passes.
    #[default]
    Warn,
    /// It fails the gate.
    Deny,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In a file.
    File {
        /// Its name, as it was given.
        file: String,
        /// From 1.
        line: usize,
        /// In characters, from 1.
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

/// A limit, what it is about, and what it means to break it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The figures it is about.
    pub selector: Selector,
    /// How much is allowed.
    pub limit: Limit,
    /// Changes against the baseline that are smaller pass; in the figure's unit.
    pub min_change: Option<f64>,
    /// Which way is worse, if not as the figure's family says.
    pub worse: Option<Worse>,
    /// What it means to break it.
    pub severity: Severity,
    /// What it means if noise hides the answer.
    pub inconclusive: Inconclusive,
    /// What it means if it is about nothing.
    pub unmatched: Unmatched,
    /// Why it is there, in the words of whoever wrote it.
    pub because: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

impl fmt::Display for Rule {
    /// As a `--limit` is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.selector, self.limit)
    }
}

/// What rules say that do not say it themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Defaults {
    /// What it means to break a limit.
    pub severity: Severity,
    /// What it means if noise hides the answer.
    pub inconclusive: Inconclusive,
    /// What it means if a rule is about nothing.
    pub unmatched: Unmatched,
}

/// Rules in order. Of those about a figure the last one decides, so that a pattern comes first
/// and its exceptions after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// For rules that are added later.
    pub defaults: Defaults,
    /// In the order they were written.
    pub rules: Vec<Rule>,
}

impl Budget {
    /// Adds a rule as `--limit` gives it: `execs{command="sed"}=0%|500`.
    ///
    /// # Errors
    ///
    /// For anything that is not understood, with its column.
    pub fn push_argument(&mut self, text: &str) -> Result<(), ArgumentError> {
        let (selector, limit) = limit::argument(text)?;
        self.rules.push(Rule {
            selector,
            limit,
            min_change: None,
            worse: None,
            severity: self.defaults.severity,
            inconclusive: self.defaults.inconclusive,
            unmatched: self.defaults.unmatched,
            because: None,
            origin: Origin::Argument,
        });
        Ok(())
    }

    /// The first rule that says nothing without a baseline.
    pub fn needs_baseline(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.limit.absolute.is_none())
    }
}

/// What is wrong with a budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct BudgetError {
    /// The file, as it was given.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}
