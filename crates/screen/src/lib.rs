//! View of a recording in a whole terminal, as the user sees it: the choices made so far, and how keys change them.
//!
//! [`Screen`] is what the user has chosen to see; [`Screen::draw`] draws it, and the state of the recording, into a buffer of
//! ratatui. Nothing here reads a file, a clock or a terminal.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod detail;
mod draw;
mod help;
#[cfg(test)]
mod hostile;
mod keymap;
mod keys;
mod paint;
mod panes;
mod rows;
mod steps;
#[cfg(test)]
#[expect(dead_code, reason = "it is shared with the tests of the state")]
#[path = "../../live/src/state/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

pub use self::keys::Key;

/// A list of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Processes,
    Programs,
    Steps,
    Directories,
    Losses,
}

impl Pane {
    pub(crate) const ALL: [Self; 5] =
        [Self::Processes, Self::Programs, Self::Steps, Self::Directories, Self::Losses];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Processes => "Processes",
            Self::Programs => "Programs",
            Self::Steps => "Steps",
            Self::Directories => "Searched in vain",
            Self::Losses => "Losses",
        }
    }
}

/// The order of processes and programs; the largest first, except for names and pids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Recent,
    Cpu,
    Memory,
    Failed,
    Count,
    Name,
}

impl Sort {
    /// The orders of a pane.
    pub(crate) fn of(pane: Pane) -> &'static [Self] {
        match pane {
            Pane::Processes => &[Self::Recent, Self::Cpu, Self::Memory, Self::Failed, Self::Count],
            Pane::Programs => &[Self::Cpu, Self::Recent, Self::Count, Self::Failed, Self::Name],
            Pane::Steps => &[Self::Recent, Self::Cpu, Self::Count, Self::Name],
            Pane::Directories => &[Self::Failed, Self::Name],
            Pane::Losses => &[Self::Count],
        }
    }

    pub(crate) fn name(self, pane: Pane) -> &'static str {
        match self {
            Self::Recent => "CPU now",
            Self::Cpu => "CPU time",
            Self::Memory => "memory",
            Self::Failed => "failed look-ups",
            Self::Count if pane == Pane::Processes => "pid",
            Self::Count if matches!(pane, Pane::Programs | Pane::Steps) => "processes",
            Self::Count => "number",
            Self::Name => "name",
        }
    }
}

/// Layer over the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Nothing,
    Help,
    /// A process, by its serial.
    Process(u32),
}

/// Position in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// The selected row.
    pub(crate) row: usize,
    /// The first row that is visible.
    pub(crate) top: usize,
}

impl Cursor {
    /// Keeps the selected row within `rows` rows and visible among `height`.
    pub(crate) fn fit(&mut self, rows: usize, height: usize) {
        // Without room, the selected row is as good as any.
        let height = height.max(1);
        self.row = self.row.min(rows.saturating_sub(1));
        let last_top = rows.saturating_sub(height);
        let lowest = (self.row + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.row.max(lowest)).min(last_top.max(lowest));
    }
}

/// Choices of the user about what is seen.
#[derive(Debug)]
pub struct Screen {
    pub(crate) pane: Pane,
    pub(crate) over: Over,
    /// Index into [`Sort::of`], by pane.
    pub(crate) sorts: [usize; Pane::ALL.len()],
    pub(crate) cursors: [Cursor; Pane::ALL.len()],
    pub(crate) filter: String,
    pub(crate) is_typing: bool,
    pub(crate) folded: HashSet<u32>,
    pub(crate) folded_categories: HashSet<String>,
    pub(crate) is_paused: bool,
    /// True if the recording was over when it was drawn last.
    pub(crate) is_over: bool,
    /// Serial of the opened process that help lies over, if it does.
    pub(crate) below_help: Option<u32>,
    /// The process under the cursor, which the cursor follows.
    pub(crate) selected: Option<u32>,
    /// The rows that were drawn last: serials of processes.
    pub(crate) rows: Vec<u32>,
    /// The category of each row that was drawn last.
    pub(crate) categories: Vec<Option<String>>,
    /// The relatives of the opened process that were drawn last.
    pub(crate) relatives: Vec<u32>,
    pub(crate) relative: Cursor,
    /// Rows of the pane that were visible.
    pub(crate) page: usize,
    has_colour: bool,
}

impl Screen {
    /// The processes, those first that use most CPU time now. Without colour, only bold, dim and
    /// reverse text is used.
    pub fn new(has_colour: bool) -> Self {
        Self {
            pane: Pane::Processes,
            over: Over::Nothing,
            sorts: [0; Pane::ALL.len()],
            cursors: [Cursor::default(); Pane::ALL.len()],
            filter: String::new(),
            is_typing: false,
            folded: HashSet::new(),
            folded_categories: HashSet::new(),
            is_paused: false,
            is_over: false,
            below_help: None,
            selected: None,
            rows: Vec::new(),
            categories: Vec::new(),
            relatives: Vec::new(),
            relative: Cursor::default(),
            page: 1,
            has_colour,
        }
    }

    /// Returns whether the view is to stay as it is.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The opened process, which is to be kept when it ends.
    pub fn opened(&self) -> Option<u32> {
        match self.over {
            Over::Process(serial) => Some(serial),
            Over::Help => self.below_help,
            Over::Nothing => None,
        }
    }

    pub(crate) fn sort(&self, pane: Pane) -> Sort {
        Sort::of(pane)[self.sorts[pane as usize]]
    }

    pub(crate) fn cursor(&mut self) -> &mut Cursor {
        &mut self.cursors[self.pane as usize]
    }

    /// Returns whether a text has the filter in it, in upper or lower case.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.filter.is_empty() || text.to_lowercase().contains(&self.filter.to_lowercase())
    }
}
