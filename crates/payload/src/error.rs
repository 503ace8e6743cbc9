//! What can be wrong with a scenario, and with the size that is asked of it.

use crate::place::field_at;

/// No plan has more processes and threads than this.
pub const MOST_TASKS: u64 = 5_000_000;

/// A scenario file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {}{message}", field_prefix(.field))]
pub struct ScenarioError {
    /// The file, or the name of the scenario.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The key, with the tables it is in; empty if it is in none.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

fn field_prefix(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

impl ScenarioError {
    /// An error at a byte of the text.
    pub(crate) fn at(file: &str, text: &str, offset: usize, message: &str) -> Self {
        let offset = floor_boundary(text, offset);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: text[line_start..offset].chars().count() + 1,
            field: field_at(text, offset),
            message: message.trim().replace('\n', "; "),
        }
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A size that a scenario cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A number is out of range.
    #[error("{name} is {value}, but must be {range}")]
    Outside {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// The plan would be too large.
    #[error(
        "too many {what}: {most} is the limit; choose a smaller scale (at most {MOST_TASKS} processes and threads)"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: u64,
    },
}
