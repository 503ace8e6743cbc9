//! Errors in a scenario, and in the requested size.

use crate::place::field_at;

/// Maximum number of processes and threads in a plan.
pub const MOST_TASKS: u64 = 5_000_000;

/// An invalid scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {}{message}", field_prefix(.field))]
pub struct ScenarioError {
    /// The file, or the name of the scenario.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key, prefixed with its tables; empty if there is none.
    pub field: String,
    /// Description of the error.
    pub message: String,
}

fn field_prefix(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

impl ScenarioError {
    /// An error at an offset in the text.
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

/// An invalid size.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A number is out of range.
    #[error("{name} is {value}, but must be {range}")]
    Outside {
        /// The name of the number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The permitted range.
        range: &'static str,
    },
    /// The plan would be too large.
    #[error(
        "too many {what}: {most} is the limit; choose a smaller scale (at most {MOST_TASKS} processes and threads)"
    )]
    TooMany {
        /// Kind of things counted.
        what: &'static str,
        /// The limit.
        most: u64,
    },
}
