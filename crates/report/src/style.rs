//! Layout options of a terminal report.

/// Layout options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Terminal columns.
    pub width: usize,
    /// Terminal lines.
    pub lines: usize,
    /// Maximum rows of each table.
    pub rows: usize,
    /// True if to use colour.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, lines: 24, rows: 10, colour: false }
    }
}

impl Style {
    pub(crate) fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn alarm(self, text: &str) -> String {
        if self.colour { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
    }
}
