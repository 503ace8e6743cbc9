//! Errors in rules that somebody wrote.

/// Invalid rules of classification or of advice.
#[derive(Debug, thiserror::Error)]
#[error("{name}:{line}:{column}: {message}")]
pub struct RulesError {
    /// The pack, or the path of its file.
    pub name: String,
    /// Number, from 1.
    pub line: usize,
    /// Number, from 1, in characters.
    pub column: usize,
    /// Description of the error.
    pub message: String,
}
